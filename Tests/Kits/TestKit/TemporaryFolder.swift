import FoundationEssentials
import Glibc

/// A temporary folder, which is removed with its contents when the object is released.
public final class TemporaryFolder: Sendable {
    public let path: String

    public init() throws {
        var template = Array("/tmp/gattherd-test-XXXXXX".utf8CString)
        guard let made = unsafe mkdtemp(&template) else { throw CocoaError(.fileWriteUnknown) }
        path = unsafe String(cString: made)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// The path of `name` in the folder.
    public func file(_ name: String) -> String {
        path + "/" + name
    }

    /// Writes `text` to the file `name` atomically and returns its path.
    @discardableResult
    public func write(_ text: String, to name: String) throws -> String {
        let path = file(name)
        try Data(text.utf8).write(to: URL(filePath: path), options: .atomic)
        return path
    }
}
