import FoundationEssentials
import Glibc

/// Where a simulation keeps its files.
struct SimulationFolder {
    let path: String
    private let isKept: Bool

    /// - Parameter kept: A folder that stays; `nil` for a new one below `$TMPDIR`, or `/tmp`.
    /// - Throws: ``Failure`` when it cannot be made.
    init(keeping kept: String?) throws(Failure) {
        isKept = kept != nil
        if let kept {
            try? FileManager.default.createDirectory(atPath: kept, withIntermediateDirectories: true)
            path = kept.hasPrefix("/") ? kept : FileManager.default.currentDirectoryPath + "/" + kept
        } else {
            var template = Array(((Console.environment("TMPDIR") ?? "/tmp") + "/gattherd-XXXXXX").utf8CString)
            path = unsafe mkdtemp(&template).map { unsafe String(cString: $0) } ?? ""
        }
        guard unsafe access(path, W_OK | X_OK) == 0 else {
            let reason = unsafe String(cString: strerror(errno))
            throw Failure(.cannotCreate, "gattherd simulate: no folder to work in: \(kept ?? "$TMPDIR"): \(reason)")
        }
    }

    func file(_ name: String) -> String { path + "/" + name }

    func write(_ text: String, to name: String, isSecret: Bool = false) throws(Failure) {
        let permissions: [FileAttributeKey: Any] = [.posixPermissions: isSecret ? 0o600 : 0o644]
        guard FileManager.default.createFile(atPath: file(name), contents: Data(text.utf8), attributes: permissions)
        else { throw Failure(.cannotCreate, "gattherd simulate: cannot write \(file(name))") }
    }

    /// Removes it with all that is in it, unless it is to be kept.
    func remove() {
        if !isKept { try? FileManager.default.removeItem(atPath: path) }
    }
}
