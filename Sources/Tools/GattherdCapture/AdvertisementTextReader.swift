import GattherdGATT
import GattherdModel

/// Reads advertisements from lines of text: what `btmon` and `hcidump -R` print, or hexadecimal digits.
///
/// A line of digits has the AD structures, or an HCI event that begins with `04 3E`. A time and an address may come
/// before them. `#` begins a comment.
package struct AdvertisementTextReader {
    private let file: String
    private var reports = AdvertisingReports()
    private var monitor = MonitorTextReader()
    /// The digits of an unfinished packet of `hcidump`, and the number of its first line.
    private var packet: (digits: String, line: Int)?
    /// True once a line of `btmon` was read.
    private var isMonitor = false

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
        let text = String(decoding: line, as: UTF8.self)
        if MonitorTextReader.isHeading(text) { isMonitor = true }
        if isMonitor { return monitor.read(text) }
        if text.hasPrefix(">") || text.hasPrefix("<") {
            defer { packet = text.hasPrefix(">") ? (String(text.dropFirst()), number) : ("", number) }
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

    /// Returns the advertisements that the end of the file completes.
    package mutating func finish() throws(CaptureError) -> [CapturedAdvertisement] {
        isMonitor ? monitor.finish() : try finishPacket()
    }

    private mutating func finishPacket() throws(CaptureError) -> [CapturedAdvertisement] {
        guard let packet else { return [] }
        self.packet = nil
        return packet.digits.isEmpty ? [] : try event(try octets(packet.digits, packet.line), nil, packet.line)
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
        if let address = words.first.flatMap({ BluetoothAddress($0) }), words.count > 1 {
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

    private func octets(_ text: String, _ number: Int) throws(CaptureError) -> [UInt8] {
        let digits = text.hasPrefix("0x") || text.hasPrefix("0X") ? text.dropFirst(2) : text[...]
        if let octets = Hexadecimal.octets(digits), !octets.isEmpty { return octets }
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
