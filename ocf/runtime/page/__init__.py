"""The page of a running operator: its owners by trouble, each with its explanation, and what its reconciles did."""
