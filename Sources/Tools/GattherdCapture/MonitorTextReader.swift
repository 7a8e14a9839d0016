import GattherdGATT
import GattherdModel

/// Reads the advertising reports that `btmon` prints.
///
/// Extended reports have all bytes. The bytes of other reports are reconstructed from the printed words where possible.
struct MonitorTextReader {
    /// A report whose lines are being read.
    fileprivate struct Report {
        let time: Timestamp?
        var address: BluetoothAddress?
        var rssi: Int?
        /// The length of the data as it was printed; `nil` before that line.
        var length: Int?
        var isLast = true
        /// The printed bytes.
        var dump: [UInt8] = []
        /// The structures that were printed in words.
        var structures: [AdvertisingData.Structure] = []
        /// The company or service whose data is in the next line.
        var head: AdvertisingData.Structure?
        /// The type and width of the UUIDs in the next lines.
        var list: (type: UInt8, width: Int)?
    }

    private var reports = AdvertisingReports()
    private var report: Report?
    /// The time of the event that is being read, if it has advertisements.
    private var event: (time: Timestamp?, isAdvertising: Bool) = (nil, false)
    private(set) var untranslated = 0

    /// The beginnings of btmon's first line, of its packets and notes, and of the parts that have advertisements.
    private static let headings = [
        "Bluetooth monitor ver", "> HCI Event:", "< HCI Command:", "> ACL Data ", "< ACL Data ", "@ ", "= ",
        "LE Advertising Report", "LE Extended Advertising Report",
    ]

    /// True for a line with which the text of btmon, or an excerpt of it, may begin.
    static func isHeading(_ line: String) -> Bool {
        let text = line.plain.trimmed
        return headings.contains { text.hasPrefix($0) }
    }

    /// Reads one line, and returns the advertisements that it completes.
    mutating func read(_ line: String) -> [CapturedAdvertisement] {
        let line = line.plain
        guard line.first == " " || line.first == "\t" else {
            let finished = finish()
            event = (Self.time(of: line), false)
            return finished
        }
        let text = line.trimmed
        if text.hasPrefix("LE Advertising Report") || text.hasPrefix("LE Extended Advertising Report") {
            event.isAdvertising = true
            return finish()
        }
        guard event.isAdvertising else { return [] }
        if text.hasPrefix("Event type:") {
            let finished = finish()
            report = Report(time: event.time)
            return finished
        }
        readReport(text)
        return []
    }

    /// Returns the advertisement that the end of the file, or the next report, completes.
    mutating func finish() -> [CapturedAdvertisement] {
        guard let report = closed(), let address = report.address else { return [] }
        let isDumped = !report.dump.isEmpty && report.dump.count == report.length
        let words = report.structures.flatMap(\.octets)
        let octets = isDumped ? report.dump : words + report.dump
        guard let whole = reports.complete(octets, of: address, isLast: report.isLast), !whole.isEmpty else {
            return []
        }
        if !isDumped, let length = report.length, octets.count < length { untranslated += 1 }
        return [CapturedAdvertisement(time: report.time, address: address, rssi: report.rssi, octets: whole)]
    }

    private mutating func closed() -> Report? {
        defer { report = nil }
        return report
    }

    // MARK: - Lines of a report

    private mutating func readReport(_ text: Substring) {
        guard var report else { return }
        defer { self.report = report }
        if let octets = Self.dump(text) {
            // Bytes that are no structures are printed a second time.
            let rest = max(0, (report.length ?? 0) - report.dump.count)
            report.dump += octets.prefix(rest)
            return
        }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let (key, value) = (parts[0].trimmed, parts.count > 1 ? parts[1].trimmed : "")
        switch key {
        case "Address": report.address = value.split(separator: " ").first.flatMap { BluetoothAddress($0) }
        case "RSSI": report.rssi = value.split(separator: " ").first.flatMap { Int($0) }
        case "Data status": report.isLast = !value.hasPrefix("Incomplete, more")
        case "Data length": report.length = Self.number(value)
        default: if report.length != nil { report.readStructure(key, value) }
        }
    }

    /// Returns the bytes of a line such as `02 01 06  ...`; `nil` for other lines.
    private static func dump(_ text: Substring) -> [UInt8]? {
        let columns = text.prefix(47).split(separator: " ", omittingEmptySubsequences: false)
        let digits = columns.prefix { $0.count == 2 && Hexadecimal.octets($0) != nil }
        guard !digits.isEmpty, digits.count == columns.count || columns[digits.count].isEmpty else { return nil }
        return digits.compactMap { Hexadecimal.octets($0)?.first }
    }

    fileprivate static func number(_ text: Substring) -> Int? {
        text.hasPrefix("0x") ? Int(text.dropFirst(2), radix: 16) : Int(text)
    }

    /// Returns the time at the end of an event's line: a date and a time, or seconds from the start of btmon.
    private static func time(of line: String) -> Timestamp? {
        let words = line.split(separator: " ").suffix(2)
        guard let last = words.last, let first = words.first else { return nil }
        if let time = Timestamp(rfc3339: "\(first)T\(last)Z".utf8) { return time }
        guard let seconds = Double(last), (0..<1e9).contains(seconds) else { return nil }
        return Timestamp(microseconds: Int64((seconds * 1e6).rounded()))
    }
}

extension MonitorTextReader.Report {
    /// Reads a line that describes an AD structure, or a part of one.
    fileprivate mutating func readStructure(_ key: Substring, _ value: Substring) {
        if key == "Data" || key.hasPrefix("Data[") {
            guard let head, let octets = Hexadecimal.octets(value) else { return }
            add(head.type, head.contents + octets)
        } else if let list, value.isEmpty || !key.contains("UUIDs"), let uuid = Self.parenthesised(key) {
            let octets = uuid.shortestOctets
            guard octets.count == list.width, let last = structures.popLast() else { return }
            structures.append(AdvertisingData.Structure(type: list.type, contents: last.contents + octets))
        } else {
            (head, list) = (nil, nil)
            begin(key, value)
        }
    }

    private mutating func begin(_ key: Substring, _ value: Substring) {
        let number = value.dropSuffix(")").split(separator: "(").last ?? ""
        switch key {
        case "Flags": add(0x01, MonitorTextReader.number(value).map { [UInt8(truncatingIfNeeded: $0)] })
        case "Name (complete)": add(0x09, Array(value.utf8))
        case "Name (short)": add(0x08, Array(value.utf8))
        case "TX power":
            let power = value.split(separator: " ").first.flatMap { Int8($0) }
            add(0x0A, power.map { [UInt8(bitPattern: $0)] })
        case "Company":
            guard let company = UInt16(number) else { return }
            let contents = [UInt8(truncatingIfNeeded: company), UInt8(company >> 8)]
            head = AdvertisingData.Structure(type: 0xFF, contents: contents)
        case "Service Data":
            head = BluetoothUUID(number).map { AdvertisingData.Structure(type: 0x16, contents: $0.shortestOctets) }
        default: beginOther(key, value)
        }
    }

    private mutating func beginOther(_ key: Substring, _ value: Substring) {
        let number = key.split(separator: " ").last.map { $0.dropSuffix(")") } ?? ""
        if key.hasPrefix("Service Data (UUID "), let uuid = BluetoothUUID(number) {
            add(0x16, Hexadecimal.octets(value).map { uuid.shortestOctets + $0 })
        } else if key.hasPrefix("Unknown EIR field "), let type = MonitorTextReader.number(number) {
            add(UInt8(truncatingIfNeeded: type), Hexadecimal.octets(value))
        } else if key.contains("-bit Service UUIDs"), let bits = Int(key.prefix { $0.isNumber }) {
            let isComplete = key.hasSuffix("(complete)")
            let types: [Int: UInt8] = [16: 0x02, 32: 0x04, 128: 0x06]
            guard let type = types[bits] else { return }
            list = (type + (isComplete ? 1 : 0), bits / 8)
            structures.append(AdvertisingData.Structure(type: type + (isComplete ? 1 : 0), contents: []))
        }
    }

    private mutating func add(_ type: UInt8, _ contents: [UInt8]?) {
        head = nil
        guard let contents else { return }
        structures.append(AdvertisingData.Structure(type: type, contents: contents))
    }

    /// Returns the UUID of a line such as `Heart Rate (0x180d)`.
    private static func parenthesised(_ text: Substring) -> BluetoothUUID? {
        guard text.hasSuffix(")"), let open = text.lastIndex(of: "(") else { return nil }
        return BluetoothUUID(text[text.index(after: open)...].dropLast())
    }
}

extension String {
    /// The line without its line break and the colours of a terminal.
    fileprivate var plain: String {
        var rest = self[...]
        var plain = ""
        while let escape = rest.firstIndex(of: "\u{1B}") {
            plain += rest[..<escape]
            rest = rest[escape...].drop { $0 != "m" }.dropFirst()
        }
        plain += rest
        return plain.last == "\r" ? String(plain.dropLast()) : plain
    }
}

extension Substring {
    fileprivate func dropSuffix(_ suffix: String) -> Substring { hasSuffix(suffix) ? dropLast(suffix.count) : self }
}
