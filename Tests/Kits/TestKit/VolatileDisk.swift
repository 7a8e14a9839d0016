import Foundation
public import GattherdProcess
import Glibc

/// A file system with simulated power cuts, which lose all unsynced writes.
///
/// Needs the right to mount.
///
/// An ext4 file system in a file. The kernel keeps writes in memory, as for any disk, and writes them to the file at a
/// sync or after many seconds. At any time, the file has the contents of a disk after a power cut.
public final class VolatileDisk: Sendable {
    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    /// The mount point.
    public let path: String
    private let folder: TemporaryFolder
    private let image: String

    /// Makes a disk of 48 MiB.
    ///
    /// - Throws: ``Failure`` if this process may not mount it.
    public init() async throws {
        folder = try TemporaryFolder()
        image = folder.file("image")
        path = folder.file("disk")
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        try await run("truncate", "-s", "48M", image)
        try await run("mkfs.ext4", "-q", "-b", "1024", image)
        try await mount()
    }

    deinit {
        unsafe umount2(path, Int32(MNT_DETACH))
    }

    /// True if this process may make a volatile disk.
    public static func isPossible() async -> Bool {
        (try? await VolatileDisk()) != nil
    }

    /// Suspends and kills a process.
    ///
    /// Returns the disk in the state that a power cut at that instant leaves.
    public func cutPower(of child: ChildProcess) async throws {
        child.signal(SIGSTOP)
        try await eventually { Self.isStopped(child.pid) }
        let rest = try syncedImage()
        child.signal(SIGKILL)
        _ = await child.wait()
        guard unsafe umount2(path, 0) == 0 else { throw Failure(description: "cannot unmount \(path): \(errno)") }
        // A new file, since the kernel may still write to the old one.
        try FileManager.default.removeItem(atPath: image)
        try rest.write(to: URL(filePath: image))
        try await mount()
    }

    /// The contents of the disk.
    ///
    /// Read again, if the kernel wrote meanwhile.
    private func syncedImage() throws -> Data {
        var (before, now) = (Data(), try Data(contentsOf: URL(filePath: image)))
        while before != now {
            (before, now) = (now, try Data(contentsOf: URL(filePath: image)))
        }
        return now
    }

    /// True if no thread of the process runs, not even in the kernel.
    private static func isStopped(_ pid: Int32) -> Bool {
        let tasks = "/proc/\(pid)/task"
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
        return threads.allSatisfy { thread in
            let status = try? String(contentsOfFile: "\(tasks)/\(thread)/stat", encoding: .utf8)
            return status.map { $0[($0.lastIndex(of: ")") ?? $0.startIndex)...].hasPrefix(") T") } ?? true
        }
    }

    private func mount() async throws {
        try await run("mount", "-o", "loop", image, path)
    }

    private func run(_ program: String, _ arguments: String...) async throws {
        let status = try await ChildProcess(program, arguments, output: .null, errors: .null).wait()
        guard status == .exited(0) else { throw Failure(description: "\(program): \(status)") }
    }
}
