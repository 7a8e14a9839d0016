import GattherdGATT
import GattherdModel
import GattherdProfiles

/// An explanation as a table for the terminal.
struct ExplanationText {
    let text: String

    /// - Parameters:
    ///   - explanation: The explained fields.
    ///   - profile: The decoding profile.
    ///   - position: The index of the stream in the profile.
    init(_ explanation: Explanation, _ profile: any Profile, _ position: Int) {
        let count = explanation.payload.count
        let stream = profile.streams[position]
        let title = "\(profile.origin), \(stream.name) (\(stream.source)): \(Self.bytes(count))"
        let header = ["AT", "BYTES", "FIELD", "READ AS", "RAW", "VALUE", "HOW", "LINE"]
        let rows = explanation.rows.map { row in
            [
                Self.place(row.octets), Self.hexadecimal(explanation.payload[row.octets]), row.field, row.source,
                row.raw, row.value, row.remark, "\(row.line)",
            ]
        }
        let table = rows.isEmpty ? [] : TextTable(header, rows).lines + [""]
        text = ([title, ""] + table + [Self.rest(explanation)]).joined(separator: "\n")
    }

    /// - Parameters:
    ///   - dependence: The samples of a native profile and the bytes on which they depend.
    ///   - profile: The decoding profile.
    ///   - position: The index of the stream in the profile.
    init(_ dependence: SampleDependence, _ profile: any Profile, _ position: Int) {
        let stream = profile.streams[position]
        let payload = dependence.payload
        let title = "\(profile.origin), \(stream.name) (\(stream.source)): \(Self.bytes(payload.count))"
        let rows = dependence.rows.map { row in
            [
                Self.places(row.bytes), Self.hexadecimal(row.bytes.map { payload[$0] }[...]), row.sample.metric.name,
                SampleText.words(row.sample),
            ]
        }
        let table = rows.isEmpty ? [] : TextTable(["AT", "BYTES", "METRIC", "VALUE"], rows).lines + [""]
        let list = { (bytes: [Int]) in bytes.isEmpty ? "none" : Self.places(bytes) }
        let end = [
            "Bytes that decide which values there are: \(list(dependence.deciding)).",
            "Bytes without effect: \(list(dependence.unused)).",
            "It is not known how a native profile decodes. Each bit was changed in turn to see what depends on it.",
        ]
        text = ([title, ""] + table + end).joined(separator: "\n")
    }

    /// Returns ascending places as ranges, such as `0,2-3`.
    private static func places(_ bytes: [Int]) -> String {
        var ranges: [Range<Int>] = []
        for byte in bytes {
            let start = ranges.last?.upperBound == byte ? ranges.removeLast().lowerBound : byte
            ranges.append(start..<byte + 1)
        }
        return ranges.isEmpty ? "-" : ranges.map(place).joined(separator: ",")
    }

    private static func place(_ bytes: Range<Int>) -> String {
        guard let last = bytes.last else { return "-" }
        return bytes.count == 1 ? "\(last)" : "\(bytes.lowerBound)-\(last)"
    }

    private static func hexadecimal(_ bytes: ArraySlice<UInt8>) -> String {
        bytes.map { byte in Hexadecimal.text([byte].span).uppercased() }.joined(separator: " ")
    }

    private static func bytes(_ count: Int) -> String { "\(count) byte\(count == 1 ? "" : "s")" }

    private static func rest(_ explanation: Explanation) -> String {
        guard !explanation.isRepetition else { return "It repeats an earlier payload: no reading." }
        let left = explanation.leftOver
        guard !left.isEmpty else { return "No byte is left over." }
        let hex = hexadecimal(explanation.payload[left])
        guard explanation.rejection == nil else { return "Not decoded: \(hex), from \(left.lowerBound)." }
        return "Left over, and ignored: \(hex), from \(left.lowerBound)."
    }
}
