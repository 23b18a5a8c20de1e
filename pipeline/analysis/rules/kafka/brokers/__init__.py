"""Do brokers answer, and who leads?"""
