"""Who commits, who comes and goes, who holds what up?"""
