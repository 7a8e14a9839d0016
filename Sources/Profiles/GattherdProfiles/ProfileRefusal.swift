/// The reason why a profile or a folder is not used, in one line.
package struct ProfileRefusal: Error, Hashable, Sendable {
    /// The file or folder.
    package let path: String
    /// The line in a text file, from 1; `nil` if the whole file is meant.
    package let line: Int?
    package let column: Int?
    /// The reason.
    package let reason: String
    /// The remedy; `nil` if the reason implies it.
    package let remedy: String?

    package init(path: String, line: Int? = nil, column: Int? = nil, reason: String, remedy: String? = nil) {
        self.path = path
        self.line = line
        self.column = column
        self.reason = reason
        self.remedy = remedy
    }
}

extension ProfileRefusal: CustomStringConvertible {
    /// The place as `path:line:column`.
    package var place: String {
        [path, line.map(String.init), column.map(String.init)].compactMap(\.self).joined(separator: ":")
    }

    /// The message as `path:line:column: reason. remedy`.
    package var description: String {
        guard let remedy else { return "\(place): \(reason)" }
        return "\(place): \(reason). \(remedy)"
    }
}

extension ProfileRefusal {
    /// True if the refused file is `origin`, or the refused folder contains it or its link target.
    ///
    /// Both paths may be relative or contain links.
    package func concerns(_ origin: String) -> Bool {
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
package struct ProfilePathError: Error, Hashable, Sendable {
    package let path: String
    package let reason: String
}

extension ProfilePathError: CustomStringConvertible {
    package var description: String {
        "profile path \(path): \(reason). Correct 'profiles: paths:', or create the folder"
    }
}
