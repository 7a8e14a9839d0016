import GattherdCapture
import GattherdModel

/// A file with recorded values or advertisements: a capture, a trace of HCI packets, or text.
struct CaptureFile {
    enum Entry {
        /// The peripheral of the values that follow.
        case header(CaptureHeader)
        case value(CaptureValue)
        case advertisement(CapturedAdvertisement)
    }

    /// The formats, for the help of commands.
    static let formats = """
        It may be a file of 'gattherd capture', a trace of 'btmon -w' or of Android (btsnoop), the text that btmon,
        'hcidump -R' or 'hcidump -R -t' prints, or lines with the AD structures of one advertisement each, in hexadecimal. A time and an address
        may come before the digits: 2026-11-21T03:20:05Z C0:FF:EE:00:00:01 02010606FF9904…
        """

    private let source: LineSource

    /// - Parameter path: The file; `-` for standard input.
    /// - Throws: ``CommandFailure`` if it cannot be opened.
    init(path: String) throws(CommandFailure) {
        source = try LineSource(path: path)
    }

    /// Returns the advertisements in the argument of an option.
    ///
    /// - Throws: ``CommandFailure`` if one is invalid.
    static func advertisements(
        inArgument text: String,
        of option: String
    ) throws(CommandFailure) -> [CapturedAdvertisement] {
        do throws(CaptureError) {
            return try AdvertisementTextReader.advertisements(inArgument: text, of: option)
        } catch {
            throw CommandFailure(.usage, "gattherd: \(Terminal.harmless(error.reason))")
        }
    }

    /// Passes each entry on, in order; says so if there is none.
    ///
    /// - Throws: ``CommandFailure`` for the first invalid line, and whatever `body` throws.
    func forEach(_ body: (Entry) throws(CommandFailure) -> Void) throws(CommandFailure) {
        var isEmpty = true
        try read { (entry) throws(CommandFailure) in
            isEmpty = false
            try body(entry)
        }
        if isEmpty { Terminal.printError("gattherd: \(source.name) has no values and no advertisements") }
    }

    private func read(_ body: (Entry) throws(CommandFailure) -> Void) throws(CommandFailure) {
        if try source.starts(with: SnoopReader.magic) { return try readTrace(body) }
        if try source.starts(with: [UInt8(ascii: "{")]), try !isArray { return try readCapture(body) }
        try readText(body)
    }

    /// True if the file begins with an array of bytes in the source text of a program.
    private var isArray: Bool {
        get throws(CommandFailure) { try source.starts(with: Array("{0x".utf8)) }
    }

    private func readCapture(_ body: (Entry) throws(CommandFailure) -> Void) throws(CommandFailure) {
        var hasPeripheral = false
        while let line = try source.next() {
            guard !line.isEmpty else { continue }
            let parsed = try reading { () throws(CaptureError) in
                try CaptureLine(line, source.number, file: source.name)
            }
            switch parsed {
            case .header(let header):
                hasPeripheral = true
                try body(.header(header))
            case .value(let value):
                guard hasPeripheral else { throw source.failure("the header line must come first") }
                try body(.value(value))
            case .advertisements: break
            case .advertisement(let advertisement): try body(.advertisement(advertisement))
            }
        }
    }

    private func readText(_ body: (Entry) throws(CommandFailure) -> Void) throws(CommandFailure) {
        var reader = AdvertisementTextReader(file: source.name)
        while let line = try source.next() {
            let found = try reading { () throws(CaptureError) in try reader.read(line, source.number) }
            for advertisement in found { try body(.advertisement(advertisement)) }
        }
        let last = try reading { () throws(CaptureError) in try reader.finish() }
        for advertisement in last { try body(.advertisement(advertisement)) }
        if reader.untranslated > 0 {
            Terminal.printError(
                "gattherd: of \(reader.untranslated) advertisements btmon describes a part in words only, which is "
                    + "left out; write a trace instead: btmon -w FILE"
            )
        }
    }

    private func readTrace(_ body: (Entry) throws(CommandFailure) -> Void) throws(CommandFailure) {
        let header = try source.octets(SnoopReader.headerSize)
        var reader = try reading { () throws(CaptureError) in try SnoopReader(header, file: source.name) }
        while true {
            let record = try source.octets(SnoopReader.recordSize)
            guard !record.isEmpty else { return }
            let size = try reading { () throws(CaptureError) in try reader.size(of: record) }
            let packet = try source.octets(size)
            let found = try reading { () throws(CaptureError) in try reader.advertisements(record, packet) }
            for advertisement in found { try body(.advertisement(advertisement)) }
        }
    }

    private func reading<Value>(_ read: () throws(CaptureError) -> Value) throws(CommandFailure) -> Value {
        do throws(CaptureError) {
            return try read()
        } catch {
            throw CommandFailure(.data, Terminal.harmless(error.description))
        }
    }
}
