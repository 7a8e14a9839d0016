import GattherdModel
import GattherdSync
import Glibc

/// The kind of file at the history's path, by its first bytes.
enum FileContent: Equatable {
    /// No file, or an empty one.
    case nothing
    /// An SQLite database, ours or not, intact or damaged.
    case database
    /// A history file with a damaged beginning.
    case damaged
    /// Another kind of file, described by the text.
    case foreign(String)

    private static let signature = Array("SQLite format 3\0".utf8)

    /// Reads the first page; SQLite reports the error of an unreadable file.
    init(_ path: String) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else {
            self = errno == ENOENT ? .nothing : .database
            return
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            self = .foreign(status.st_mode & S_IFMT == S_IFDIR ? "a directory" : "no regular file")
            return
        }
        let page = Self.page(of: path)
        if status.st_size == 0 {
            self = .nothing
        } else if page?.starts(with: Self.signature) ?? true {
            self = .database
        } else if let page, Self.isText(page) {
            self = .foreign("text")
        } else {
            // Only a history file of gattherd has a sequence file beside it.
            self = SequenceFile(path: path + "-seq").read() == .missing ? .foreign("a file of another kind") : .damaged
        }
    }

    /// The content in words, for messages.
    var words: String {
        switch self {
        case .nothing: "an empty file"
        case .database: "a database"
        case .damaged: "a history with a damaged beginning"
        case .foreign(let words): words
        }
    }

    /// Throws if the file must not be changed.
    static func expectHistory(_ path: String) throws(StoreFault) {
        guard case .foreign(let what) = FileContent(path) else { return }
        throw StoreFault(
            "\(path): this is \(what), not a history; nothing was changed: choose another history.path, or move it away"
        )
    }

    /// Throws if there is no database to read.
    static func expectExistingHistory(_ path: String) throws(StoreFault) {
        guard unsafe access(path, R_OK) == 0 else { throw unreadable(path, errno) }
        switch FileContent(path) {
        case .database: return
        case .nothing:
            throw StoreFault("\(path): the file is empty; the daemon creates the history when it starts")
        case .foreign(let what):
            let remedy = "choose the file of the daemon's history.path"
            throw StoreFault("\(path): this is \(what), not a history; \(remedy)", .damaged)
        case .damaged:
            let remedy = "'gattherd db restore FILE' replaces it by a backup"
            throw StoreFault("\(path): the beginning of the file is damaged; \(remedy)", .damaged)
        }
    }

    private static func unreadable(_ path: String, _ code: Int32) -> StoreFault {
        switch code {
        case ENOENT: StoreFault("\(path): there is no history here yet; the daemon creates it when it starts")
        case EACCES, EPERM:
            StoreFault("\(path): this user may not read the history; run this as root or as the daemon's user")
        default:
            StoreFault("\(path): \(SystemError(code)); is this the daemon's history.path?")
        }
    }

    /// True for UTF-8 without a zero byte; its last character may be cut.
    private static func isText(_ bytes: [UInt8]) -> Bool {
        guard !bytes.contains(0) else { return false }
        return (0...3).contains { String(validating: bytes.dropLast($0), as: UTF8.self) != nil }
    }

    /// Returns the first bytes; `nil` if they cannot be read, or this process has the file open as a database.
    static func page(of path: String) -> [UInt8]? {
        OpenDatabases.unlessOpen(path) {
            let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
            guard descriptor >= 0 else { return nil }
            defer { close(descriptor) }
            var bytes = [UInt8](repeating: 0, count: 4096)
            let count = unsafe read(descriptor, &bytes, bytes.count)
            return count < 0 ? nil : Array(bytes[..<count])
        }
    }
}

/// A problem of a history's file that can be detected without opening it.
public struct HistoryFileProblem: Hashable, Sendable {
    /// The problem and its remedy.
    public let text: String
    public let remedy: String
    /// True if the daemon does not start with this file, because it must not change it.
    public let preventsStart: Bool

    /// Examines the file; `nil` if nothing is wrong.
    public init?(path: String) {
        let path = DatabaseName.resolved(path)
        let content = FileContent(path)
        switch content {
        case .database:
            guard let refusal = DatabaseHeader(ofFile: path)?.refusal else { return nil }
            preventsStart = true
            text = "'\(path)' is \(refusal.what)"
            remedy = refusal.remedy
        case .foreign(let what):
            preventsStart = true
            text = "'\(path)' is \(what), not a history"
            remedy = "choose another history.path, or move the file away"
        case .damaged:
            preventsStart = false
            text = "'\(path)' is damaged"
            remedy = "the daemon moves it aside at its start; 'gattherd db restore FILE' brings a backup back"
        case .nothing:
            guard case .mark(let mark) = SequenceFile(path: path + "-seq").read(), mark > 0 else { return nil }
            preventsStart = false
            text = "'\(path)' is missing or empty, although readings were stored in it"
            remedy = "'gattherd db restore FILE' brings a backup back; else the daemon begins a new one"
        }
    }
}
