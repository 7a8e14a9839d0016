import CLinux
import GattherdBluetooth
import GattherdConfig
import GattherdGATT
import GattherdModel
import GattherdProfiles
import GattherdSync
import Glibc

/// The outcome of a reload.
enum ReloadOutcome: Hashable, Sendable {
    /// The configuration is applied, except for changes of these sections, which wait for a restart.
    case done(waiting: [String])
    /// The previous configuration stays in use.
    case failed(String)
    /// The files are not read in time; the previous configuration stays in use, at least until they are.
    case unread(String)

    /// One line for people.
    var summary: String {
        switch self {
        case .done([]): "the configuration was reloaded"
        case .done(let sections):
            "the configuration was reloaded; changes of \(DisplayWords.list(sections)) take effect only at a "
                + "restart: systemctl restart gattherd"
        case .failed(let reason), .unread(let reason):
            "the configuration was not reloaded: \(reason.split(separator: "\n").first ?? "")"
        }
    }
}

/// The part of the configuration's files that the daemon does not follow, after its reloads so far.
struct ReloadState: Hashable, Sendable {
    private var restartNeeded: [String] = []
    private var error: String?
    private var isUnread = false

    /// Records a reload.
    ///
    /// A failed one leaves the sections that wait for a restart as they were.
    mutating func record(_ outcome: ReloadOutcome) {
        isUnread = false
        switch outcome {
        case .unread(let reason): (error, isUnread) = (reason, true)
        case .done(let waiting): (restartNeeded, error) = (waiting, nil)
        case .failed(let reason): error = reason.split(separator: "\n").first.map { String($0) } ?? ""
        }
    }

    /// The member `configuration` of the status; `nil` while the daemon uses its files as they are.
    var status: DaemonStatus.Configuration? {
        guard !restartNeeded.isEmpty || error != nil else { return nil }
        return DaemonStatus.Configuration(restartNeeded: restartNeeded, error: error, unread: isUnread ? true : nil)
    }
}

/// The changes that a running daemon has been asked for and has not made yet.
package final class PendingChanges: Sendable {
    struct Batch: Sendable {
        var isReload = false
        /// True if a reload that exceeded its limit has read its files.
        var isLateReload = false
        /// The requests that wait for the outcome of the reload.
        var reloadWaiters: [AsyncStream<ReloadOutcome>.Continuation] = []
        /// True if the enrolled devices are due for a check.
        var isCheckDue = false
        /// The peripherals that a rule may admit; bounded by ``maximumPeripherals``.
        var peripherals: [BluetoothAddress: PeripheralStatus] = [:]

        /// The peripherals in random order, so that no address is first every time when room is short.
        var shuffledPeripherals: [PeripheralStatus] { peripherals.values.shuffled() }
    }

    private static let maximumPeripherals = 1000

    /// Yields one element if there is work.
    let wakes: AsyncStream<Void>
    private let wake: AsyncStream<Void>.Continuation
    private let batch = Locked(Batch())

    init() {
        (wakes, wake) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    package func reload() { add { $0.isReload = true } }

    /// Requests the end of a reload that exceeded its limit and has read its files.
    func finishReload() { add { $0.isLateReload = true } }

    /// Reloads and returns the outcome; `nil` if the daemon ends before.
    func reloaded() async -> ReloadOutcome? {
        let (outcomes, waiter) = AsyncStream.makeStream(of: ReloadOutcome.self, bufferingPolicy: .bufferingNewest(1))
        add {
            $0.isReload = true
            $0.reloadWaiters.append(waiter)
        }
        for await outcome in outcomes { return outcome }
        return nil
    }

    /// Requests a check of the enrolled devices.
    func check() { add { $0.isCheckDue = true } }

    /// Adds a peripheral; false if there is no room, so that it may be offered again.
    func offer(_ peripheral: PeripheralStatus) -> Bool {
        let hasRoom = batch.withLock { batch in
            guard batch.peripherals.count < Self.maximumPeripherals else { return false }
            batch.peripherals[peripheral.id.address] = peripheral
            return true
        }
        wake.yield()
        return hasRoom
    }

    /// Removes and returns everything that is to be done now.
    func dequeue() -> Batch {
        batch.withLock { batch in
            defer { batch = Batch() }
            return batch
        }
    }

    private func add(_ change: (inout Batch) -> Void) {
        batch.withLock { change(&$0) }
        wake.yield()
    }
}

/// The files that a daemon reads only at its start: passwords of brokers, and native profiles.
///
/// A reload does not read them again. It compares them with the files at the start, to name the sections that wait for
/// a restart. TLS files are not among them: every connection reads them.
struct StartFiles: Sendable {
    private struct Secret: Sendable {
        let section: String
        let path: String
        let stamp: FileStamp?

        init(_ section: String, _ path: String) {
            (self.section, self.path, stamp) = (section, path, FileStamp(path))
        }

        var isReplaced: Bool { FileStamp(path) != stamp }
    }

    private let secrets: [Secret]
    /// Native profiles by path; a library stays as it was when it was loaded first.
    private var libraries: [String: FileStamp?] = [:]

    init(_ configuration: Configuration, _ registry: ProfileRegistry) {
        let files = configuration.outputFiles.filter(\.file.needsRestart)
        secrets = files.map { Secret($0.section, $0.file.path.value) }
        _ = changedSections(registry)
    }

    /// The sections of the configuration with a file that was replaced or written since; new libraries are recorded.
    mutating func changedSections(_ registry: ProfileRegistry) -> [String] {
        var sections = secrets.filter(\.isReplaced).map(\.section)
        let paths = registry.profiles.map(\.origin).filter { $0.hasSuffix(".so") }
        if paths.contains(where: { path in libraries[path].map { $0 != FileStamp(path) } ?? false }) {
            sections.append("profiles")
        }
        for path in paths where libraries[path] == nil { libraries[path] = .some(FileStamp(path)) }
        return sections
    }
}

/// The identity, size and time of a file's content.
private struct FileStamp: Hashable, Sendable {
    private let device: UInt64
    private let inode: UInt64
    private let size: Int64
    private let seconds: Int
    private let nanoseconds: Int

    /// Identifies the file; `nil` if it cannot be found.
    init?(_ path: String) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        (device, inode, size) = (UInt64(status.st_dev), UInt64(status.st_ino), Int64(status.st_size))
        (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    }
}
