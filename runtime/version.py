"""The version; the build reads it from here."""

VERSION = "0.2.0"
