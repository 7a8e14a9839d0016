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
    ///   - gattherd: The folder of ProfileKit's package; `nil`: that of the checkout that this program was built in, or
    ///     the installed one.
    /// - Throws: ``CommandFailure`` if it is missing.
    init(_ skeleton: ProfileSkeleton, folder: String, gattherd: String?) throws(CommandFailure) {
        guard folder != "-" else {
            throw CommandFailure(.usage, "gattherd: a package is a folder; choose another --output")
        }
        let places = gattherd.map { [$0] } ?? [Self.checkout, Self.installed]
        guard let place = places.first(where: Self.hasProfileKit) else {
            throw CommandFailure(
                .noInput,
                "gattherd: there is no ProfileKit in \(gattherd ?? Self.installed); "
                    + "install the package gattherd-dev, or give the folder of gattherd's sources: --gattherd FOLDER"
            )
        }
        self.skeleton = skeleton
        self.folder = folder
        self.gattherd = URL(filePath: place).standardized.path
    }

    private static func hasProfileKit(_ place: String) -> Bool {
        FileManager.default.fileExists(atPath: place + "/Sources/Profiles/ProfileKit")
    }

    /// The sources of this build: `.build/<platform>/<configuration>` of the checkout contains the program.
    private static var checkout: String { folder(above: 4) }

    /// The ProfileKit of the package gattherd-dev, for a program in `bin` of the same prefix.
    private static var installed: String { folder(above: 2) + "/src/gattherd" }

    private static func folder(above levels: Int) -> String {
        var place = URL(filePath: OwnProgram.path)
        for _ in 0..<levels { place.deleteLastPathComponent() }
        return place.path == "/" ? "" : place.path
    }

    func write() throws(CommandFailure) {
        for file in SwiftSkeleton(skeleton).files(gattherd: gattherd) {
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
