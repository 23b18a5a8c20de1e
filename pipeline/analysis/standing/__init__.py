"""How does everything stand now: groups, apis, clients, commands? Of the last moments, from the tables of the lake."""
