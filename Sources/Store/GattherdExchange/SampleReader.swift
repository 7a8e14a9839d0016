public import GattherdHistory

/// Reads exported samples of a history or of other programs, line by line.
public struct SampleReader {
    /// The maximum length of a point with line breaks, so that a missing quotation mark is detected soon.
    private static let longest = 4096

    private let format: ExchangeFormat
    private let precision: TimePrecision
    private var pool: SeriesPool
    /// The beginning of an unfinished point with line breaks, and its number of lines.
    private var begun: (bytes: [UInt8], lines: Int)?

    /// - Parameters:
    ///   - format: The format of the lines.
    ///   - precision: The unit of timestamps in line protocol.
    ///   - device: The device of lines that name none.
    public init(_ format: ExchangeFormat, precision: TimePrecision = .ns, device: String? = nil) {
        self.format = format
        self.precision = precision
        pool = SeriesPool(device: device)
    }

    /// Returns the samples of one line, without its line break; none for an empty line or a comment.
    ///
    /// A text in line protocol may have line breaks; the last of its lines then returns the samples.
    ///
    /// - Throws: ``ExchangeError`` with the fault and its remedy.
    public mutating func rows(of line: ArraySlice<UInt8>) throws(ExchangeError) -> [HistoryRow] {
        switch format {
        case .json:
            guard line.contains(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0D }) else { return [] }
            return [try pool.row(SampleFields(json: line))]
        case .line:
            guard let begun else { return try points(line.drop { $0 == 0x20 || $0 == 0x09 }, lines: 1) }
            return try points((begun.bytes + [UInt8(ascii: "\n")] + line)[...], lines: begun.lines + 1)
        }
    }

    /// Checks that the last line ends its text.
    ///
    /// - Throws: ``ExchangeError`` if a text is unfinished.
    public func finish() throws(ExchangeError) {
        guard let begun else { return }
        let start =
            switch begun.lines {
            case 1: "in this line"
            case 2: "a line above"
            default: "\(begun.lines - 1) lines above"
            }
        throw ExchangeError("the text that begins \(start) does not end")
    }

    private mutating func points(_ line: ArraySlice<UInt8>, lines: Int) throws(ExchangeError) -> [HistoryRow] {
        // A carriage return within a text belongs to the text; at the end of a point it belongs to the line break.
        let point = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
        guard let first = point.first, first != UInt8(ascii: "#") else { return [] }
        begun = nil
        let samples: [SampleFields]
        do throws(ExchangeError) {
            samples = try PointReader.samples(of: point, precision)
        } catch {
            guard error.isIncomplete, line.count <= Self.longest else { throw error }
            begun = (Array(line), lines)
            return []
        }
        var rows: [HistoryRow] = []
        for sample in samples { rows.append(try pool.row(sample)) }
        return rows
    }
}
