"""Which findings are one trouble, who causes it, whom does it hurt, and what is to be done first?"""
