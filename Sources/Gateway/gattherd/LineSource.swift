import CLinux
import GattherdSync
import Glibc

/// The lines of a file or of standard input, without their line breaks.
final class LineSource {
    private static let chunk = 262_144
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
    /// The byte order marks of UTF-16.
    private static let wideMarks: [[UInt8]] = [[0xFF, 0xFE], [0xFE, 0xFF]]
    /// The longest line, in bytes.
    private static let longest = 1 << 20

    let name: String
    /// The number of the line that was returned last.
    private(set) var number = 0
    private let descriptor: Int32
    private let size: Int
    private var read = 0
    private var buffer: [UInt8] = []
    private var place = 0

    /// - Parameter path: The file; `-` for standard input.
    /// - Throws: ``CommandFailure`` if it cannot be opened.
    init(path: String) throws(CommandFailure) {
        name = path == "-" ? "standard input" : path
        descriptor = path == "-" ? STDIN_FILENO : unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw CommandFailure(.noInput, "gattherd: \(path): \(SystemError.current)")
        }
        var status = stat()
        let isKnown = unsafe fstat(descriptor, &status) == 0
        guard !isKnown || status.st_mode & S_IFMT != S_IFDIR else {
            if descriptor != STDIN_FILENO { close(descriptor) }
            throw CommandFailure(.noInput, "gattherd: \(name): this is a folder; name a file")
        }
        size = isKnown ? Int(status.st_size) : 0
    }

    deinit {
        if descriptor != STDIN_FILENO { close(descriptor) }
    }

    /// The part of the file that was returned, from 0 to 1; `nil` if its size is unknown.
    var part: Double? { size > 0 ? Double(read - (buffer.count - place)) / Double(size) : nil }

    /// Returns the next line; `nil` after the last one.
    func next() throws(CommandFailure) -> ArraySlice<UInt8>? {
        var searched = place
        while true {
            if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                defer { place = end + 1 }
                return try line(buffer[place..<end])
            }
            searched = buffer.count - place
            guard searched <= Self.longest else {
                number += 1
                throw failure("the line is longer than 1 MiB; one line is one value")
            }
            guard try fill() else { return try last() }
        }
    }

    /// Returns true if the next bytes are `bytes`; consumes only a byte order mark before them.
    func starts(with bytes: [UInt8]) throws(CommandFailure) -> Bool {
        while buffer.count - place < bytes.count, try fill() {}
        if number == 0, buffer[place...].starts(with: Self.byteOrderMark) { place += Self.byteOrderMark.count }
        while buffer.count - place < bytes.count, try fill() {}
        return buffer[place...].starts(with: bytes)
    }

    /// Returns the next bytes of a file without lines; fewer at its end.
    func octets(_ count: Int) throws(CommandFailure) -> [UInt8] {
        while buffer.count - place < count, try fill() {}
        defer { place = min(buffer.count, place + count) }
        return Array(buffer[place...].prefix(count))
    }

    /// Returns an error about the line that was returned last.
    func failure(_ problem: String) -> CommandFailure {
        CommandFailure(.data, "\(name):\(max(1, number)): error: \(problem)")
    }

    private func last() throws(CommandFailure) -> ArraySlice<UInt8>? {
        guard place < buffer.count else { return nil }
        defer { place = buffer.count }
        return try line(buffer[place...])
    }

    /// Counts a line and skips a byte order mark.
    private func line(_ bytes: ArraySlice<UInt8>) throws(CommandFailure) -> ArraySlice<UInt8> {
        number += 1
        guard number > 1 || !Self.wideMarks.contains(where: { bytes.starts(with: $0) }) else {
            throw failure("the file is in UTF-16; write it in UTF-8: iconv -f UTF-16 -t UTF-8 FILE")
        }
        return number == 1 && bytes.starts(with: Self.byteOrderMark) ? bytes.dropFirst(3) : bytes
    }

    /// Moves the rest to the front and reads more; false at the end.
    private func fill() throws(CommandFailure) -> Bool {
        buffer.removeSubrange(..<place)
        place = 0
        let start = buffer.count
        buffer.append(contentsOf: repeatElement(0, count: Self.chunk))
        var count = -1
        repeat {
            count = unsafe buffer.withUnsafeMutableBytes { bytes in
                unsafe Glibc.read(descriptor, bytes.baseAddress?.advanced(by: start), Self.chunk)
            }
        } while count < 0 && errno == EINTR
        buffer.removeLast(Self.chunk - max(0, count))
        guard count >= 0 else {
            throw CommandFailure(.inputOutput, "gattherd: \(name): \(SystemError.current)")
        }
        read += count
        return count > 0
    }
}
