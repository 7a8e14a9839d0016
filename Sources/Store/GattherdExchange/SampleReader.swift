public import GattherdHistory

/// Reads samples that other programs or a history wrote, line by line.
public struct SampleReader {
    /// A point whose text has line breaks may be that long: a quotation mark that is missing shows soon.
    private static let longest = 4096

    private let format: ExchangeFormat
    private let precision: TimePrecision
    private var pool: SeriesPool
    /// The beginning of a point whose text has line breaks, and in how many lines.
    private var begun: (octets: [UInt8], lines: Int)?

    /// - Parameters:
    ///   - format: How the lines are written.
    ///   - precision: What times in line protocol count.
    ///   - device: What lines are of that name no device.
    public init(_ format: ExchangeFormat, precision: TimePrecision = .ns, device: String? = nil) {
        self.format = format
        self.precision = precision
        pool = SeriesPool(device: device)
    }

    /// The samples of one line, without its line break; none for an empty line or a comment.
    ///
    /// A text in line protocol may have line breaks: then the last of its lines gives the samples.
    ///
    /// - Throws: ``ExchangeError`` that says what is wrong with it.
    public mutating func rows(of line: ArraySlice<UInt8>) throws(ExchangeError) -> [HistoryRow] {
        switch format {
        case .json:
            guard line.contains(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0D }) else { return [] }
            return [try pool.row(JSONLineReader.sample(of: line))]
        case .line:
            guard let begun else { return try points(line.drop { $0 == 0x20 || $0 == 0x09 }, lines: 1) }
            return try points((begun.octets + [UInt8(ascii: "\n")] + line)[...], lines: begun.lines + 1)
        }
    }

    /// Checks that the last line ends its text.
    ///
    /// - Throws: ``ExchangeError`` when that was the beginning of a text.
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
        // Within a text this is part of it, at the end of a point it is part of the line break.
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
