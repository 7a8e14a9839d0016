import GattherdDashboard

/// The page and what it is made of, with a tag that changes with the content.
struct StaticFiles {
    private struct Entry {
        let file: DashboardFile
        let tag: String
    }

    static let dashboard = StaticFiles(DashboardFile.all)

    private let entries: [String: Entry]

    init(_ files: [DashboardFile]) {
        let entries = files.map { ($0.path, Entry(file: $0, tag: Self.tag(of: $0.octets))) }
        self.entries = Dictionary(entries) { first, _ in first }
    }

    func has(_ path: String) -> Bool { entries[path] != nil }

    /// The file, or that the browser's copy is still good; a browser asks each time.
    func response(to request: HTTPRequest, path: String) -> HTTPResponse {
        guard let entry = entries[path] else { return .error(404, "there is nothing at '\(request.path)'") }
        let isKnown = request.headers["if-none-match"] == entry.tag
        let response = HTTPResponse(isKnown ? 304 : 200, type: entry.file.type, isKnown ? [] : entry.file.octets)
        return response.with("ETag", entry.tag).with("Cache-Control", "no-cache")
    }

    /// The FNV-1a hash, 64 bits.
    private static func tag(of octets: [UInt8]) -> String {
        let hash = octets.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return "\"\(String(hash, radix: 16))\""
    }
}
