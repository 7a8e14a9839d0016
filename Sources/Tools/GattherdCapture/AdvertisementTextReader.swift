import GattherdGATT
import GattherdModel

/// Reads advertisements from text: what `btmon`, `hcidump -R` and `hcidump -R -t` print, or hexadecimal digits.
///
/// A line of digits has the AD structures, or an HCI event that begins with `04 3E`. A time and an address may come
/// before them. Bytes may have `0x` or `\x` in front, commas between them and braces around them. `#` begins a
/// comment.
package struct AdvertisementTextReader {
    private let file: String
    private var reports = AdvertisingReports()
    private var monitor = MonitorTextReader()
    /// The digits of an unfinished packet of `hcidump`, its time, and the number of its first line.
    private var packet: (digits: String, time: Timestamp?, line: Int)?
    /// True once a line of `btmon` was read.
    private var isMonitor = false
    /// True once the first line of `hcidump` was read.
    private var isDump = false

    /// The parts of advertisements that `btmon` only describes in words.
    package var untranslated: Int { monitor.untranslated }

    /// - Parameter file: The file's name, for errors.
    package init(file: String) {
        self.file = file
    }

    /// Reads one line, and returns the advertisements that it completes.
    ///
    /// - Throws: ``CaptureError`` if the line is invalid.
    package mutating func read(
        _ line: some Collection<UInt8>,
        _ number: Int
    ) throws(CaptureError) -> [CapturedAdvertisement] {
        var text = String(decoding: line, as: UTF8.self)
        if Self.isDumpHeading(text) {
            isDump = true
            return []
        }
        let time = Self.removeTime(from: &text)
        if !isMonitor, MonitorTextReader.isHeading(text) {
            guard !isDump else {
                throw CaptureError(file, number, "the bytes of the packets are missing; print them: hcidump -R")
            }
            isMonitor = true
        }
        if isMonitor { return monitor.read(text) }
        if text.hasPrefix(">") || text.hasPrefix("<") {
            defer { packet = (text.hasPrefix(">") ? String(text.dropFirst()) : "", time, number) }
            return try finishPacket()
        }
        if text.first?.isWhitespace == true, let packet {
            self.packet?.digits += packet.digits.isEmpty ? "" : text
            return []
        }
        let finished = try finishPacket()
        let word = text.prefix { $0 != "#" }.trimmed
        return word.isEmpty ? finished : finished + [try advertisement(word, number)].flatMap(\.self)
    }

    /// Returns the advertisements of an argument, which has commas between them.
    ///
    /// Commas between single bytes, as in the source text of a program, separate no advertisements.
    ///
    /// - Throws: ``CaptureError`` if one is invalid.
    package static func advertisements(
        inArgument text: String,
        of option: String
    ) throws(CaptureError) -> [CapturedAdvertisement] {
        let parts = text.split(separator: ",")
        let areBytes = parts.allSatisfy { octets($0)?.count == 1 }
        var reader = AdvertisementTextReader(file: option)
        var found: [CapturedAdvertisement] = []
        for part in areBytes ? [text[...]] : parts { found += try reader.read(part.utf8, 1) }
        return try found + reader.finish()
    }

    /// Returns the bytes of hexadecimal digits, or of an array or a string of C; `nil` otherwise.
    package static func octets(_ text: some StringProtocol) -> [UInt8]? {
        let words = text.split { $0.isWhitespace || separators.contains($0) }
        let digits = words.map { word in
            guard let prefix = ["0x", "0X", "x"].first(where: { word.hasPrefix($0) }) else { return String(word) }
            let number = word.dropFirst(prefix.count)
            return number.count == 1 ? "0\(number)" : String(number)
        }
        return Hexadecimal.octets(digits.joined(separator: " "))
    }

    /// The characters between the bytes of an array or a string of C, and around them.
    private static let separators: Set<Character> = [",", ";", "{", "}", "\\"]

    /// Returns the advertisements that the end of the file completes.
    package mutating func finish() throws(CaptureError) -> [CapturedAdvertisement] {
        isMonitor ? monitor.finish() : try finishPacket()
    }

    private mutating func finishPacket() throws(CaptureError) -> [CapturedAdvertisement] {
        guard let packet else { return [] }
        self.packet = nil
        return packet.digits.isEmpty ? [] : try event(try octets(packet.digits, packet.line), packet.time, packet.line)
    }

    /// True for the two lines that `hcidump` prints first, of an adapter or of a trace.
    private static func isDumpHeading(_ text: String) -> Bool {
        text.hasPrefix("HCI sniffer - ") || text.hasPrefix("btsnoop version: ")
            || text.hasPrefix("device: ") && text.contains(" snap_len: ")
    }

    /// Removes the time that `hcidump -t` prints before the direction of a packet, and returns it.
    private static func removeTime(from text: inout String) -> Timestamp? {
        guard text.first?.isNumber == true else { return nil }
        let words = text.split(separator: " ", maxSplits: 2)
        guard words.count == 3, words[2].hasPrefix(">") || words[2].hasPrefix("<"),
            let time = Timestamp(rfc3339: "\(words[0])T\(words[1])Z".utf8)
        else { return nil }
        text = String(words[2])
        return time
    }

    private mutating func advertisement(
        _ text: Substring,
        _ number: Int
    ) throws(CaptureError) -> [CapturedAdvertisement] {
        var words = text.split(whereSeparator: \.isWhitespace)[...]
        var found = CapturedAdvertisement(octets: [])
        if let time = words.first.flatMap({ Timestamp(rfc3339: $0.utf8) }) {
            found.time = time
            words.removeFirst()
        }
        if let address = words.first.flatMap(Self.address), words.count > 1 {
            found.address = address
            words.removeFirst()
        }
        found.octets = try octets(words.joined(separator: " "), number)
        guard found.octets.starts(with: [0x04, 0x3E]) else { return [found] }
        return try event(found.octets, found.time, number)
    }

    private mutating func event(
        _ octets: [UInt8],
        _ time: Timestamp?,
        _ number: Int
    ) throws(CaptureError) -> [CapturedAdvertisement] {
        guard octets.first == 0x04 else { return [] }
        do throws(PayloadError) {
            return try reports.advertisements(in: Array(octets.dropFirst()), at: time)
        } catch {
            throw CaptureError(file, number, "the HCI event is not complete: \(error)")
        }
    }

    /// Returns the address of a word such as `C0:FF:EE:00:00:01`; `nil` for words without separators.
    private static func address(_ word: Substring) -> BluetoothAddress? {
        word.utf8.count == 17 ? BluetoothAddress(anyNotation: word) : nil
    }

    private func octets(_ text: String, _ number: Int) throws(CaptureError) -> [UInt8] {
        if let octets = Self.octets(text), !octets.isEmpty { return octets }
        guard !text.contains(where: { $0 == "\0" || $0 == "\u{FFFD}" }) else {
            throw CaptureError(file, number, "this is neither text nor a btsnoop trace; write one: btmon -w FILE")
        }
        throw CaptureError(
            file,
            number,
            "'\(text.prefix(40))' is no advertisement; expected hexadecimal digits, such as 02 01 06 03 03 0D 18"
        )
    }
}

extension StringProtocol {
    /// The text without spaces around it.
    var trimmed: SubSequence {
        let start = drop(while: \.isWhitespace)
        guard let last = start.lastIndex(where: { !$0.isWhitespace }) else { return start.prefix(0) }
        return start[...last]
    }
}
