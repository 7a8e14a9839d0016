import FoundationEssentials
import Glibc

/// A small file system in memory, which is quickly full.
///
/// Needs the right to mount.
public final class SmallFileSystem: Sendable {
    public let folder: TemporaryFolder
    public let path: String

    /// True if this process may mount file systems.
    public static let isPossible = (try? SmallFileSystem(kibibytes: 64)) != nil

    public init(kibibytes: Int) throws {
        folder = try TemporaryFolder()
        path = folder.file("disk")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        guard unsafe mount("none", path, "tmpfs", 0, "size=\(kibibytes)k") == 0 else {
            throw CocoaError(.fileWriteNoPermission)
        }
    }

    deinit {
        unsafe umount2(path, Int32(MNT_DETACH))
    }

    /// Makes the file system read-only or writable.
    ///
    /// Returns true on success.
    @discardableResult
    public func setReadOnly(_ isReadOnly: Bool) -> Bool {
        let flags = UInt(MS_REMOUNT) | (isReadOnly ? UInt(MS_RDONLY) : 0)
        return unsafe mount("none", path, "tmpfs", flags, nil) == 0
    }

    /// Changes the size.
    ///
    /// Returns true on success.
    @discardableResult
    public func resize(kibibytes: Int) -> Bool {
        unsafe mount("none", path, "tmpfs", UInt(MS_REMOUNT), "size=\(kibibytes)k") == 0
    }

    /// Fills the file system.
    ///
    /// Returns the file to remove for space.
    public func fill() throws -> String {
        let ballast = path + "/ballast"
        let descriptor = unsafe open(ballast, O_WRONLY | O_CREAT, 0o600)
        defer { close(descriptor) }
        let page = [UInt8](repeating: 1, count: 4096)
        while unsafe write(descriptor, page, page.count) > 0 {}
        return ballast
    }
}
