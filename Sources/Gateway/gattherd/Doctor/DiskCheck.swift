import CLinux
import GattherdConfig
import GattherdGateway
import GattherdHistory
import GattherdSync
import Glibc

/// Findings about the place of history: permissions, file system, free space.
struct DiskCheck {
    /// The properties of a file system.
    struct FileSystem: Hashable {
        /// The `f_type` of statfs(2).
        var type: UInt
        /// The free space in bytes.
        var free: UInt64
    }

    private let path: String
    private let maximum: UInt64
    private let unit: ServiceUnit?

    /// - Parameters:
    ///   - settings: The section `history`.
    ///   - unit: The unit of the service; `nil` without one.
    init(_ settings: HistorySettings, _ unit: ServiceUnit? = nil) {
        path = settings.path.value
        maximum = settings.maxSize
        self.unit = unit
    }

    private var folder: String { path.parentFolder }

    /// The reason why the folder cannot be used, if so; systemd creates the service's own folder.
    var folderProblem: DoctorFinding? {
        guard let problem = HistoryFolder(of: path).absence, !(problem.isMissing && isMadeBySystemd) else { return nil }
        return DoctorFinding("history", .error, problem.text, remedy: problem.remedy)
    }

    private var isMadeBySystemd: Bool { unit?.stateFolders.contains(folder) == true }

    var findings: [DoctorFinding] {
        if let folderProblem { return [folderProblem] }
        var answer = clinux_file_system()
        guard unsafe clinux_file_system(folder, &answer) == 0 else { return beforeFirstStart(folder) }
        let system = FileSystem(type: answer.type, free: answer.free)
        return permission(folder) + content + [Self.kind(system, folder), Self.room(system, folder, used, maximum)]
    }

    /// The finding about a file that is not a history, or that is missing although there was one.
    private var content: [DoctorFinding] {
        guard let problem = HistoryFileProblem(path: path) else { return [] }
        return [DoctorFinding("history", .error, problem.text, remedy: problem.remedy)]
    }

    /// The findings about a folder that is missing until systemd creates it for the service's user.
    private func beforeFirstStart(_ folder: String) -> [DoctorFinding] {
        let parent = folder.parentFolder
        var answer = clinux_file_system()
        let made = DoctorFinding.good("history", "'\(folder)' is made when the service starts for the first time")
        guard unsafe clinux_file_system(parent, &answer) == 0 else { return [made] }
        let system = FileSystem(type: answer.type, free: answer.free)
        return [made, Self.kind(system, parent), Self.room(system, parent, 0, maximum)]
    }

    private var used: UInt64 {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? UInt64(clamping: status.st_size) : 0
    }

    private func permission(_ folder: String) -> [DoctorFinding] {
        let isThere = unsafe access(path, F_OK) == 0
        let target = isThere ? path : folder
        guard unsafe access(target, W_OK) != 0 else { return [.good("history", "'\(path)' can be written")] }
        // Read errno before any other call changes it.
        let reason = SystemError.current.description
        let user = HostFacts.current.user
        let text = "'\(target)' cannot be written by user \(user): \(reason)"
        let advice = "if the daemon runs as \(user): chown \(user) '\(target)'; else run this as the daemon's user"
        return [DoctorFinding("history", .error, text, remedy: advice)]
    }

    static func kind(_ system: FileSystem, _ folder: String) -> DoctorFinding {
        let check = "filesystem"
        switch system.type {
        case 0x6969, 0x517B, 0xFF53_4D42, 0xFE53_4D42, 0x0102_1997, 0x00C3_6400:
            let text = "'\(folder)' is on a network file system, on which SQLite may lose or damage data"
            return DoctorFinding(check, .error, text, remedy: "set history.path to a local disk")
        case 0x0102_1994, 0x8584_58F6:
            let text = "'\(folder)' is in memory: history is lost with the next start of the host"
            return DoctorFinding(check, .warning, text, remedy: "set history.path to a disk, unless this is intended")
        case 0x794C_7630:
            let text = "'\(folder)' is in the container's own layer: history is lost with the container"
            return DoctorFinding(check, .warning, text, remedy: "mount a volume there: -v gattherd:\(folder)")
        case 0x4D44, 0x2011_BAB0:
            let text = "'\(folder)' is on a FAT file system, which a loss of power may damage"
            return DoctorFinding(
                check,
                .warning,
                text,
                remedy: "set history.path to a disk with ext4, btrfs, xfs or f2fs"
            )
        case 0x6573_5546:
            let text = "'\(folder)' is on a file system in user space (FUSE): it may not sync and lock reliably"
            return DoctorFinding(check, .note, text, remedy: "a local ext4, btrfs, xfs or f2fs is safer")
        default: return .good(check, "'\(folder)' is on \(names[system.type] ?? "a local disk")")
        }
    }

    private static let names: [UInt: String] = [
        0xEF53: "ext4", 0x9123_683E: "btrfs", 0x5846_5342: "xfs", 0xF2F5_2010: "f2fs", 0x2FC1_2FC1: "zfs",
    ]

    /// - Parameters:
    ///   - system: The file system.
    ///   - folder: The folder of history.
    ///   - used: The size of history, in bytes.
    ///   - maximum: Its largest size, in bytes.
    /// - Returns: A finding that is good if there is enough space.
    static func room(_ system: FileSystem, _ folder: String, _ used: UInt64, _ maximum: UInt64) -> DoctorFinding {
        let free = mebibytes(Int64(clamping: system.free))
        if system.free < 64 << 20 {
            let text = "only \(free) are free in '\(folder)'"
            return DoctorFinding("disk", .error, text, remedy: "make room, or set history.path to another disk")
        }
        let needed = maximum > used ? maximum - used : 0
        guard system.free < needed else { return .good("disk", "\(free) are free in '\(folder)'") }
        let text = "history may grow by \(mebibytes(Int64(clamping: needed))), but \(free) are free in '\(folder)'"
        return DoctorFinding("disk", .warning, text, remedy: "lower history.max_size, or make room")
    }
}
