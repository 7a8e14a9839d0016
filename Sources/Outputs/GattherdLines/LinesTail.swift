import GattherdOutputs

/// The end of a file of lines, which may have an unfinished line.
struct LinesTail {
    /// The start of each line that gattherd writes.
    private static let lineStart = Array("{\"type\":\"".utf8)
    /// The longest unfinished line that is searched.
    private static let longest: Int64 = 16 << 20
    private static let chunk: Int64 = 65_536

    let size: Int64
    /// Reads as many bytes at a position; throws if the disk does not give all of them.
    let read: (Int64, Int) throws(OutputFault) -> [UInt8]

    /// Returns the position after the last line break.
    func end() throws(OutputFault) -> Int64 {
        var end = size
        while end > 0, size - end < Self.longest {
            let start = max(0, end - Self.chunk)
            let bytes = try read(start, Int(end - start))
            if let index = bytes.lastIndex(of: UInt8(ascii: "\n")) { return start + Int64(index) + 1 }
            end = start
        }
        return end
    }

    /// True if a line of gattherd begins at a position before the end, or its first bytes and then zeros.
    ///
    /// A power cut leaves zeros for what was not written yet, also from the middle of a word on.
    func isUnfinishedLine(at position: Int64) throws(OutputFault) -> Bool {
        let start = try read(position, Int(min(size - position, Int64(Self.lineStart.count))))
        guard !start.isEmpty else { return false }
        let text = start.prefix { $0 != 0 }
        return Self.lineStart.starts(with: text) && start.dropFirst(text.count).allSatisfy { $0 == 0 }
    }
}
