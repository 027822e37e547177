"""What `tilewright explain schedule` and `explain memory` say."""
