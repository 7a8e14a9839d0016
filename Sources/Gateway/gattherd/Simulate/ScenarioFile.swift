import FoundationEssentials
import GattherdSimulator
import GattherdSync
import Glibc

/// A scenario file.
struct ScenarioFile {
    private static let standardName = "lab.yaml"

    let path: String
    let scenario: Scenario

    /// - Parameter path: A file; `nil` for the scenario that comes with gattherd.
    /// - Throws: ``CommandFailure`` if it cannot be read, or is wrong.
    init(_ path: String?) throws(CommandFailure) {
        self.path = if let path { path } else { try Self.standardPath() }
        guard let data = FileManager.default.contents(atPath: self.path) else {
            let reason = SystemError.current.description
            throw CommandFailure(.noInput, "gattherd simulate: cannot read \(self.path): \(reason)")
        }
        do throws(ScenarioError) {
            scenario = try Scenario(String(decoding: data, as: UTF8.self), file: self.path)
        } catch {
            throw CommandFailure(.data, "gattherd simulate: the scenario is wrong\n\(error)")
        }
        guard !scenario.peripherals.isEmpty else {
            throw CommandFailure(.data, "gattherd simulate: \(self.path): there are no peripherals in it")
        }
    }

    private static func standardPath() throws(CommandFailure) -> String {
        let folder = OwnProgram.folder
        let candidates = ["../../../config/scenarios", "../share/gattherd/scenarios"].map {
            folder + "/" + $0 + "/" + standardName
        }
        if let path = candidates.first(where: { FileManager.default.fileExists(atPath: $0) }) {
            return URL(filePath: path).standardized.path
        }
        throw CommandFailure(
            .usage,
            "gattherd simulate: no \(standardName) was installed with gattherd; name a SCENARIO"
        )
    }
}

/// The paths of this program and of the programs built with it.
enum OwnProgram {
    /// The executable, symbolic links resolved.
    static let path =
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? CommandLine.arguments[0]

    static var folder: String { String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.startIndex)) }

    /// The command to type in the current folder.
    static var words: String { CommandLine.arguments[0] }

    /// Returns the path of the program `name` in the same folder.
    static func sibling(_ name: String) -> String { folder + "/" + name }
}
