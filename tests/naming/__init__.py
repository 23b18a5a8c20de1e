"""Are things called by the field's words?"""
