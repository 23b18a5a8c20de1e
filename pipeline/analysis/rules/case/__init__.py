"""A case: findings with one root, as the texts of rules see them."""
