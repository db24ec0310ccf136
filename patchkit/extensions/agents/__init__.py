"""What a program with a model behind it may ask, and propose, over the Model Context Protocol."""
