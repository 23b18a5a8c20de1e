"""The rules that find trouble: meaning, evidence, advice. ``run`` applies them all."""
