import FoundationEssentials
import GattherdModel
import GattherdSync
import Glibc

/// Restores the keys of bonded devices for the adapters of this host.
struct BondRestore {
    /// The folder of bluetoothd; `nil` if bonds are not asked for.
    let folder: String?
    let time: Timestamp

    func run(_ backup: StagingFolder) throws(CommandFailure) {
        let names = backup.files(in: BackupPlan.bonds).filter(isBond)
        guard !names.isEmpty else { return }
        guard let folder else {
            let words = names.count == 1 ? "a bond; --bonds restores it" : "\(names.count) bonds; --bonds restores them"
            return Terminal.printError("gattherd restore: the backup has \(words)")
        }
        var replacement = FileReplacement(time)
        for name in names {
            let adapter = folder + "/" + (name.split(separator: "/").first ?? "")
            guard FileManager.default.fileExists(atPath: adapter) else {
                Terminal.printError("gattherd restore: not restored, because this host has no such adapter: \(name)")
                continue
            }
            let content = FileManager.default.contents(atPath: backup.file("\(BackupPlan.bonds)/\(name)")) ?? Data()
            try RestoreCommand.writing { () throws(FileError) in
                try replacement.add("\(folder)/\(name)", Array(content), owner: .current, mode: 0o600)
            }
        }
        // A folder of bluetoothd must have no other files.
        try RestoreCommand.writing { () throws(FileError) in try replacement.finish(keepsOld: false) }
        Terminal.printError("gattherd restore: bluetoothd reads bonds at its start: systemctl restart bluetooth")
    }

    /// True for the keys of a device, `ADAPTER/DEVICE/info`.
    private func isBond(_ name: String) -> Bool {
        let parts = name.split(separator: "/")
        return parts.count == 3 && parts[2] == "info"
    }
}
