/// The reason why a profile or a folder is not used, in one line.
public struct ProfileRefusal: Error, Hashable, Sendable {
    /// The file or folder.
    public let path: String
    /// The line in a text file, from 1; `nil` if the whole file is meant.
    public let line: Int?
    public let column: Int?
    /// The reason.
    public let reason: String
    /// The remedy; `nil` if the reason implies it.
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
    /// The place as `path:line:column`.
    public var place: String {
        [path, line.map(String.init), column.map(String.init)].compactMap(\.self).joined(separator: ":")
    }

    /// The message as `path:line:column: reason. remedy`.
    public var description: String {
        guard let remedy else { return "\(place): \(reason)" }
        return "\(place): \(reason). \(remedy)"
    }
}

extension ProfileRefusal {
    /// True if the refused file is `origin`, or the refused folder contains it or its link target.
    ///
    /// Both paths may be relative or contain links.
    public func concerns(_ origin: String) -> Bool {
        let real = Self.resolved(origin)
        let folders = [Self.resolved(Self.folder(of: origin)), Self.folder(of: real)]
        return path == origin || ([real] + folders).contains(Self.resolved(path))
    }

    /// Returns the path without symbolic links; unchanged if it does not exist.
    private static func resolved(_ path: String) -> String {
        do throws(FileFault) { return try FileTrust(path).path } catch { return path }
    }

    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}

/// An unreadable path in the configuration.
public struct ProfilePathError: Error, Hashable, Sendable {
    public let path: String
    public let reason: String
}

extension ProfilePathError: CustomStringConvertible {
    public var description: String {
        "profile path \(path): \(reason). Correct 'profiles: paths:', or create the folder"
    }
}
