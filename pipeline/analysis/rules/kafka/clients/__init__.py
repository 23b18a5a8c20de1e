"""Which software asks for what, and what will break?"""
