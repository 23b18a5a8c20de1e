"""What does a Kafka message say, in a line for people?"""
