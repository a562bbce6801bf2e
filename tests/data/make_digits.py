#!/usr/bin/python3
"""Make the four IDX .gz files of this directory from scikit-learn's digits.csv.gz.

    apt-get install python3-sklearn
    tests/data/make_digits.py [CSV [DIRECTORY]]

The csv has 1 797 lines of 64 pixels (0..16) and a label. Pixels become 0..255, so that they are read
like those of MNIST. The first 1 500 rows are the training set, the last 297 the test set. The output
is the same byte for byte in every run (no time stamp, no name in the gzip header).
"""
import gzip
import os
import struct
import sys

CSV = "/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz"
TRAIN_ROWS = 1500


def read_rows(path):
    with gzip.open(path, "rt", encoding="ascii") as f:
        rows = [[int(float(cell)) for cell in line.split(",")] for line in f]
    if len(rows) != 1797 or any(len(r) != 65 or not 0 <= r[64] <= 9 for r in rows):
        sys.exit(f"{path}: not the 1 797 x 64 digits with labels 0..9")
    if any(not 0 <= pixel <= 16 for r in rows for pixel in r[:64]):
        sys.exit(f"{path}: a pixel is not in 0..16")
    return rows


def write_idx(path, sizes, data):
    header = bytes([0, 0, 8, len(sizes)]) + struct.pack(f">{len(sizes)}I", *sizes)
    with open(path, "wb") as f:
        f.write(gzip.compress(header + bytes(data), compresslevel=9, mtime=0))


def write_set(directory, name, rows):
    pixels = [(pixel * 255 + 8) // 16 for r in rows for pixel in r[:64]]
    labels = [r[64] for r in rows]
    write_idx(os.path.join(directory, f"{name}-images-idx3-ubyte.gz"), [len(rows), 8, 8], pixels)
    write_idx(os.path.join(directory, f"{name}-labels-idx1-ubyte.gz"), [len(rows)], labels)


def main():
    csv = sys.argv[1] if len(sys.argv) > 1 else CSV
    directory = sys.argv[2] if len(sys.argv) > 2 else os.path.dirname(os.path.abspath(__file__))
    rows = read_rows(csv)
    write_set(directory, "train", rows[:TRAIN_ROWS])
    write_set(directory, "t10k", rows[TRAIN_ROWS:])


if __name__ == "__main__":
    main()
