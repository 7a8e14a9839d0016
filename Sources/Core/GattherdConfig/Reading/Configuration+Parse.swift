import GattherdYAML

extension Configuration {
    /// Reads the texts of a configuration.
    ///
    /// Lists of devices and of rules are joined over the files; every other key is set in one of them. Relative paths
    /// are relative to the folder of the first file. By default, history is `gattherd.db` in
    /// `$STATE_DIRECTORY` (the first of several folders, separated by colons), else in `/var/lib/gattherd` if the
    /// first file is below `/etc`, else beside the first file.
    ///
    /// - Parameters:
    ///   - sources: The main file, then the others in the order of their names.
    ///   - environment: The environment.
    ///   - outputs: The sections of outputs; each is a key of the top level.
    /// - Returns: The configuration with defaults filled in.
    /// - Throws: ``ConfigErrors`` with all errors.
    package static func parse(
        _ sources: [ConfigSource],
        in environment: ConfigEnvironment,
        outputs: [any OutputSectionDefinition.Type]
    ) throws(ConfigErrors) -> Configuration {
        let (configuration, errors) = parseLeniently(sources, in: environment, outputs: outputs)
        guard errors.isEmpty else { throw ConfigErrors(errors) }
        return configuration
    }

    /// Reads the texts of a configuration as far as they are valid.
    ///
    /// - Parameters:
    ///   - sources: The main file, then the others in the order of their names.
    ///   - environment: The environment.
    ///   - outputs: The sections of outputs; each is a key of the top level.
    ///   - renames: The keys that were renamed in some version.
    /// - Returns: The configuration, with a default for each invalid value, and all errors.
    package static func parseLeniently(
        _ sources: [ConfigSource],
        in environment: ConfigEnvironment,
        outputs: [any OutputSectionDefinition.Type],
        renames: [ConfigRename] = ConfigRename.all
    ) -> (configuration: Configuration, errors: [ConfigError]) {
        let findings = ConfigFindings(files: sources.map(\.name))
        var renaming = KeyRenaming(renames)
        let parts = sources.flatMap { roots(of: ConfigFile($0), findings) }.map { renaming.apply(to: $0) }
        let reader = SectionReader(
            parts,
            title: "the configuration",
            place: nil,
            findings: findings,
            substitution: Substitution(variables: environment.variables)
        )
        let paths = PathRule(folder: PathRule.folder(of: sources.first?.name ?? ""))
        let whole = ConfigurationReader(environment: environment, paths: paths, outputs: outputs)
        var configuration = whole.configuration(reader)
        configuration.oldKeys = renaming.found
        return (configuration, findings.sorted)
    }

    /// The file's mapping, or, after a syntax error, the mapping of each section that is valid by itself.
    private static func roots(of file: ConfigFile, _ findings: ConfigFindings) -> [FileNode] {
        do throws(YAMLError) {
            return try YAML.parse(file.bytes).map { [FileNode(node: $0, file: file)] } ?? []
        } catch {
            let (line, column) = (error.position.line, error.position.column)
            findings.report(.syntax(error.problem), at: ConfigPlace(file, line: line, column: column, width: 1))
            return file.sections.compactMap { section in
                let node = (try? YAML.parse(section)) ?? nil
                return node?.members == nil ? nil : node.map { FileNode(node: $0, file: file) }
            }
        }
    }
}

/// The folder that relative paths of a configuration start from.
struct PathRule: Sendable {
    /// The folder with a slash at its end, or empty.
    let folder: String

    static func folder(of file: String) -> String {
        guard let slash = file.lastIndex(of: "/") else { return "" }
        return String(file[...slash])
    }

    func resolve(_ path: String) -> String { path.hasPrefix("/") ? path : folder + path }

    func resolve(_ path: Located<String>) -> Located<String> { Located(resolve(path.value), at: path.place) }
}
