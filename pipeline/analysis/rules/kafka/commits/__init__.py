"""Rules about commits of one partition that several make, or one makes again and again."""
