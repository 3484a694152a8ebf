"""Comparing samples in feature space: are they alike, and does one depend on the other?"""
