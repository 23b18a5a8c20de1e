"""Packets with their times, out of pcap and pcapng files, pipes and archives."""
