import CLinux
import FoundationEssentials
import GattherdSync
import Glibc

/// The databases that `make test-servers` has unpacked, where the user of their processes can read them.
///
/// Root starts them as another user, who cannot read a checkout below a private folder. Then they are copied to a
/// temporary folder, once for each process of tests.
enum UnpackedServers {
    private static let original = Checkout.root.appending(path: ".build/servers").path
    /// The folder of libraries on this architecture.
    static let libraries: String = {
        #if arch(arm64)
        "usr/lib/aarch64-linux-gnu"
        #else
        "usr/lib/x86_64-linux-gnu"
        #endif
    }()
    /// The parts that run; the rest is documentation.
    private static let parts = [
        "usr/lib/postgresql", libraries, "usr/sbin/pgbouncer", "usr/share/postgresql",
    ]
    /// The copy, which is removed at the end of this process.
    private static let copy = Locked<TemporaryFolder?>(nil)

    /// The root of the unpacked files; `nil` if there are none.
    static let folder: String? = {
        guard FileManager.default.fileExists(atPath: original + "/" + parts[0]) else { return nil }
        guard getuid() == 0, !isReachableByAll(original) else { return original }
        do {
            return try makeCopy()
        } catch {
            return nil
        }
    }()

    /// Copies the programs, 50 MB.
    private static func makeCopy() throws -> String {
        let folder = try TemporaryFolder()
        for part in parts where FileManager.default.fileExists(atPath: original + "/" + part) {
            let parent = part.prefix(upTo: part.lastIndex(of: "/") ?? part.endIndex)
            let above = folder.file(String(parent))
            try FileManager.default.createDirectory(atPath: above, withIntermediateDirectories: true)
            try FileManager.default.copyItem(atPath: original + "/" + part, toPath: folder.file(part))
        }
        guard unsafe chmod(folder.path, 0o755) == 0 else { throw CocoaError(.fileWriteNoPermission) }
        copy.withLock { $0 = folder }
        atexit { UnpackedServers.copy.withLock { $0 = nil } }
        return folder.path
    }

    /// True if any user may enter the folder and all folders above it.
    static func isReachableByAll(_ path: String) -> Bool {
        var path = path
        while true {
            var status = stat()
            guard unsafe stat(path, &status) == 0, status.st_mode & 0o001 == 1 else { return false }
            guard path != "/" else { return true }
            path = (path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "")
            if path.isEmpty { path = "/" }
        }
    }
}
