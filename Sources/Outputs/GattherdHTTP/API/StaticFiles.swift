import GattherdDashboard

/// The files of the dashboard, each with an entity tag of its content.
struct StaticFiles {
    private struct Entry {
        let file: DashboardFile
        let tag: String
    }

    static let dashboard = StaticFiles(DashboardFile.all)

    private let entries: [String: Entry]

    init(_ files: [DashboardFile]) {
        let entries = files.map { ($0.path, Entry(file: $0, tag: Self.tag(of: $0.bytes))) }
        self.entries = Dictionary(entries) { first, _ in first }
    }

    func has(_ path: String) -> Bool { entries[path] != nil }

    /// Returns the file, or 304 if the client has this version.
    ///
    /// Clients revalidate each time.
    func response(to request: HTTPRequest, path: String) -> HTTPResponse {
        guard let entry = entries[path] else { return .error(404, "there is nothing at '\(request.path)'") }
        let isKnown = request.headers["if-none-match"] == entry.tag
        let response = HTTPResponse(isKnown ? 304 : 200, type: entry.file.type, isKnown ? [] : entry.file.bytes)
        return response.with("ETag", entry.tag).with("Cache-Control", "no-cache")
    }

    /// Returns an entity tag: the 64-bit FNV-1a hash.
    private static func tag(of bytes: [UInt8]) -> String {
        let hash = bytes.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        return "\"\(String(hash, radix: 16))\""
    }
}
