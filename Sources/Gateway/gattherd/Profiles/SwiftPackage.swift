import FoundationEssentials
import GattherdProfiles

/// The package of a native profile on disk.
struct SwiftPackage {
    private let skeleton: ProfileSkeleton
    private let folder: String
    private let gattherd: String

    /// - Parameters:
    ///   - skeleton: The content.
    ///   - folder: The folder to create.
    ///   - gattherd: The folder of gattherd's sources; `nil`: those that this program was built from.
    /// - Throws: ``CommandFailure`` if the sources are missing.
    init(_ skeleton: ProfileSkeleton, folder: String, gattherd: String?) throws(CommandFailure) {
        guard folder != "-" else {
            throw CommandFailure(.usage, "gattherd: a package is a folder; choose another --output")
        }
        let place = gattherd ?? Self.ownSources
        guard FileManager.default.fileExists(atPath: place + "/Sources/Profiles/ProfileKit") else {
            throw CommandFailure(
                .noInput,
                "gattherd: there is no ProfileKit in \(place); say where gattherd's sources are: --gattherd FOLDER"
            )
        }
        self.skeleton = skeleton
        self.folder = folder
        self.gattherd = URL(filePath: place).standardized.path
    }

    /// The sources of this build, four folders up.
    private static var ownSources: String {
        var place = URL(filePath: OwnProgram.path)
        for _ in 0..<4 { place.deleteLastPathComponent() }
        return place.path
    }

    func write() throws(CommandFailure) {
        for file in skeleton.swiftPackage(gattherd: gattherd) {
            let place = URL(filePath: folder).appending(path: file.path)
            do {
                try FileManager.default.createDirectory(
                    at: place.deletingLastPathComponent(),
                    withIntermediateDirectories: true
                )
                try file.text.write(to: place, atomically: false, encoding: .utf8)
            } catch {
                throw CommandFailure(.cannotCreate, "gattherd: cannot write \(place.path): \(error)")
            }
        }
        Terminal.say("wrote \(folder); try: cd \(folder) && swift test")
    }
}
