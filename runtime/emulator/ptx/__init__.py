"""PTX text to a program: lexer, parser, scopes, operands, and the table of instructions."""
