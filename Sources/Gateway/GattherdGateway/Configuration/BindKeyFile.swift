package import GattherdConfig
import GattherdGATT
package import GattherdModel

/// The file with the key of a device's encrypted advertisements.
package struct BindKeyFile {
    private let place: Located<String>
    private let file: SecretFile

    package init(_ place: Located<String>) {
        self.place = place
        file = SecretFile(path: place.value)
    }

    package var key: BindKey? {
        file.firstLine.flatMap { Hexadecimal.octets($0.filter { $0 != "\r" }) }
            .flatMap { BindKey($0, remark: file.secondLine ?? "") }
    }

    /// The finding about the file, if any; a key that everybody can read is an error.
    package var finding: ConfigError? {
        if let exposure = file.exposure { return ConfigError(.exposedSecret(exposure), about: place) }
        if let reason = file.unreadable("bind key") { return ConfigError(.file(reason), about: place) }
        let advice = "write the bind key, 32 hexadecimal digits, into its first line"
        return key == nil ? ConfigError(.file("'\(file.path)' has no bind key; \(advice)"), about: place) : nil
    }
}
