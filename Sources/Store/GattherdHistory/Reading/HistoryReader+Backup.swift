public import GattherdModel
import Glibc

extension HistoryReader {
    /// Copies a snapshot of the history without free pages, while the daemon continues.
    ///
    /// The copy gets its name when it is complete and on the disk.
    ///
    /// - Parameter path: The copy, which must not exist yet.
    /// - Throws: ``StoreFault`` if the copy exists or cannot be written.
    public func backUp(to path: String) throws(StoreFault) {
        guard unsafe access(path, F_OK) != 0 else {
            throw StoreFault("\(path): there is such a file already; choose another one, or remove it")
        }
        let draft = path + ".part"
        unsafe unlink(draft)
        do throws(StoreFault) {
            try copy(to: draft)
            try FileSync.file(draft)
        } catch {
            unsafe unlink(draft)
            throw error
        }
        guard unsafe rename(draft, path) == 0 else { throw StoreFault(errno: errno, "cannot rename", path: draft) }
        try FileSync.directory(of: path)
    }

    private func copy(to path: String) throws(StoreFault) {
        let statement = try Statement("VACUUM INTO ?1", on: connection)
        try connection.execute("PRAGMA query_only = OFF")
        try Schema.copying(connection) { () throws(StoreFault) in try statement.run(text: path.utf8Span.span, at: 1) }
        try connection.execute("PRAGMA query_only = ON")
    }
}
