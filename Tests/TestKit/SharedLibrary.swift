import FoundationEssentials
import GattherdProcess
import Glibc

/// Shared libraries for tests: built from C on the spot, or found where the package's own are.
public enum SharedLibrary {
    /// The compiler refused the source.
    public struct BuildFailure: Error, CustomStringConvertible {
        public let description: String
    }

    /// Builds `source` (C11) to `name` in `folder`; the contract's header is found.
    ///
    /// - Returns: The library's path.
    public static func build(_ source: String, to name: String, in folder: TemporaryFolder) async throws -> String {
        let input = try folder.write(source, to: name + ".c")
        let output = folder.file(name)
        let include = root + "/Sources/CGattherdProfile/include"
        let compiler = try ChildProcess(
            "cc",
            ["-std=c11", "-Wall", "-Werror", "-shared", "-fPIC", "-I", include, "-o", output, input]
        )
        guard await compiler.wait() == .exited(0) else { throw BuildFailure(description: "cc refuses \(input)") }
        return output
    }

    /// The path of a library product of this package, for example `HeartRate`, beside the program that runs the tests.
    public static func product(_ name: String) throws -> String {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let folder = program.split(separator: "/").dropLast().joined(separator: "/")
        return "/\(folder)/lib\(name).so"
    }

    /// The package's folder.
    public static var root: String {
        "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    }
}
