"""How groups, apis, clients and commands stand now: of the last moments, from the tables of the lake."""
