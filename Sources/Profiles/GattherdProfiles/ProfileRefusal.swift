/// Why a profile, or a folder of them, is not used; one line for people.
public struct ProfileRefusal: Error, Hashable, Sendable {
    /// The file or folder.
    public let path: String
    /// Where in a text file, counted from 1; `nil` when it is about the file as a whole.
    public let line: Int?
    public let column: Int?
    /// What is wrong.
    public let reason: String
    /// What to do; `nil` when the reason says it.
    public let remedy: String?

    public init(path: String, line: Int? = nil, column: Int? = nil, reason: String, remedy: String? = nil) {
        self.path = path
        self.line = line
        self.column = column
        self.reason = reason
        self.remedy = remedy
    }
}

extension ProfileRefusal: CustomStringConvertible {
    /// `path:line:column`.
    public var place: String {
        [path, line.map(String.init), column.map(String.init)].compactMap(\.self).joined(separator: ":")
    }

    /// `path:line:column: reason. remedy`.
    public var description: String {
        guard let remedy else { return "\(place): \(reason)" }
        return "\(place): \(reason). \(remedy)"
    }
}

extension ProfileRefusal {
    /// True when what is refused is the file at `origin`, or the folder that it, or what it links to, is in.
    ///
    /// Either may be named by a relative path, or through links.
    public func concerns(_ origin: String) -> Bool {
        let real = Self.resolved(origin)
        let folders = [Self.resolved(Self.folder(of: origin)), Self.folder(of: real)]
        return path == origin || ([real] + folders).contains(Self.resolved(path))
    }

    /// Without links; as it is when it leads nowhere.
    private static func resolved(_ path: String) -> String {
        do throws(FileFault) { return try FileTrust(path).path } catch { return path }
    }

    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}

/// A configured path that cannot be read: the configuration is wrong, not a profile.
public struct ProfilePathError: Error, Hashable, Sendable {
    public let path: String
    public let reason: String
}

extension ProfilePathError: CustomStringConvertible {
    public var description: String {
        "profile path \(path): \(reason). Correct 'profiles: paths:', or create the folder"
    }
}
