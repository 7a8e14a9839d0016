import FoundationEssentials
package import GattherdProfiles

/// The profiles that come with gattherd.
package enum InstalledProfiles {
    /// The folders of the installed profiles, or of those that were built beside the program.
    ///
    /// Profiles in `/etc/gattherd/profiles` go before those in `../lib/gattherd/profiles`, which come with gattherd.
    package static var folders: [String] {
        let program = URL(filePath: CommandLine.arguments[0])
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? program.path
        let folder = URL(filePath: own).deletingLastPathComponent()
        let installed = folder.deletingLastPathComponent().appending(path: "lib/gattherd/profiles").path
        let candidates = ["/etc/gattherd/profiles", installed]
        return candidates.filter { FileManager.default.fileExists(atPath: $0) } + built(in: folder)
    }

    /// Loads the profiles of ``folders``; a folder that cannot be read is among the refusals.
    package static func load(for account: ProfileAccount = .current) -> ProfileRegistry {
        ProfileRegistry.load(readable: folders, for: account)
    }

    /// The libraries beside a program in a build folder, and the declarative profiles of its package.
    private static func built(in folder: URL) -> [String] {
        var package = folder
        for _ in 0..<3 { package.deleteLastPathComponent() }
        let standard = package.appending(path: "Plugins/Standard").path
        guard FileManager.default.fileExists(atPath: standard) else { return [] }
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        let libraries = names.filter { $0.hasPrefix("lib") && $0.hasSuffix(".so") }.sorted()
        return libraries.map { folder.appending(path: $0).path } + [standard]
    }
}

extension ProfileRefusal {
    /// The reason and the remedy.
    package var advice: String { remedy.map { "\(reason). \($0)" } ?? reason }
}
