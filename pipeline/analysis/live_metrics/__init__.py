"""The current state of groups, apis, clients and commands: of the last moments, from the tables of the lake."""
