import GattherdSync
import Glibc

extension String {
    /// The last component of a path.
    var fileName: String { lastIndex(of: "/").map { String(self[index(after: $0)...]) } ?? self }

    /// Returns the path relative to a folder; `nil` if it is not inside.
    ///
    /// A path with `..` is inside if the folder that it leads to is.
    func relative(toFolder folder: String) -> String? {
        let (path, base) = (pathComponents, folder.pathComponents)
        guard path.count > base.count, path.starts(with: base) else { return nil }
        return path.dropFirst(base.count).joined(separator: "/")
    }

    /// The components of the absolute path.
    private var pathComponents: [Substring] {
        let absolute = hasPrefix("/") ? self : Terminal.currentFolder + "/" + self
        let parts = absolute.split(separator: "/").filter { $0 != "." }
        guard parts.contains(".."), let last = parts.last, last != ".." else { return parts }
        // The folder above a link is known to the system only.
        guard let real = unsafe realpath(absolute.parentFolder, nil) else { return parts }
        defer { unsafe free(real) }
        return (unsafe String(cString: real)).split(separator: "/") + [last]
    }
}
