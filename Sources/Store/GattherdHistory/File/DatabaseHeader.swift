import Glibc

/// The header of a database, by which the file of another program or version is recognised without SQLite.
///
/// See "Database File Format", section "The Database Header".
struct DatabaseHeader {
    private static let length = 100

    private let applicationID: Int32
    private let version: Int32

    /// Reads the header of a file; `nil` if it cannot be read, is damaged, or if a WAL may have a newer one.
    init?(ofFile path: String) {
        var status = stat()
        guard unsafe stat(path + "-wal", &status) != 0 || status.st_size == 0 else { return nil }
        guard let page = FileContent.page(of: path) else { return nil }
        self.init(page)
    }

    /// - Parameter page: The first bytes of a file with the signature of SQLite.
    private init?(_ page: [UInt8]) {
        // SQLite reports a file without these constants as damaged.
        guard page.count >= Self.length, page[21..<24].elementsEqual([64, 32, 32]) else { return nil }
        version = Self.number(at: 60, in: page)
        applicationID = Self.number(at: 68, in: page)
    }

    private static func number(at offset: Int, in page: [UInt8]) -> Int32 {
        Int32(bitPattern: page[offset..<offset + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
    }

    /// The kind of file, and the remedy, if the daemon refuses it; `nil` if it may be a history or empty.
    var refusal: (what: String, remedy: String)? {
        // An empty database has neither; only SQLite can count its tables.
        if applicationID == 0 && version == 0 { return nil }
        if applicationID != Schema.applicationID {
            return (
                "another program's database (application_id \(applicationID)), not a history",
                "choose another history.path, or move the file away"
            )
        }
        guard version > Schema.steps.count else { return nil }
        return (
            "a history of a newer gattherd (version \(version), this one knows \(Schema.steps.count))",
            "update gattherd, or choose another history.path"
        )
    }
}
