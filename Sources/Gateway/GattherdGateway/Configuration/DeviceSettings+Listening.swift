package import GattherdConfig
import GattherdDaemon
import GattherdModel
package import GattherdProfiles

extension DeviceSettings {
    /// True if all profiles that the device names are for advertisements; it is then never connected.
    package func isListenedTo(with registry: ProfileRegistry) -> Bool {
        let named = (profiles ?? []).compactMap { registry[$0.value] }
        return !named.isEmpty && named.allSatisfy(\.isForAdvertisements)
    }

    /// Returns the settings of a sensor that only advertises; `nil` for a device that is connected.
    func listening(with registry: ProfileRegistry) -> SupervisedDevice.Listening? {
        guard isListenedTo(with: registry) else { return nil }
        return SupervisedDevice.Listening(
            silence: silence.duration,
            key: bindKeyFile.flatMap { BindKeyFile($0).key },
            identity: irkFile.flatMap { IdentityKeyFile($0).key }
        )
    }

    /// Returns the findings about the settings of a sensor.
    func listeningFindings(with registry: ProfileRegistry) -> [ConfigError] {
        if isListenedTo(with: registry) {
            let bindKey = bindKeyFile.flatMap { BindKeyFile($0).finding } ?? shortKeyFinding(with: registry)
            let identity = irkFile.flatMap { IdentityKeyFile($0).finding }
            return [bindKey, identity, silence.listeningFinding].compactMap(\.self)
        }
        let advertised = (profiles ?? []).filter { registry[$0.value]?.isForAdvertisements == true }
        let mixed = advertised.map { profile in
            let advice =
                "'\(profile.value)' is for devices that are never connected; name profiles of one kind only"
            return ConfigError(.conflict(advice), about: profile)
        }
        let advice = "is for devices with a profile of advertisements, such as bthome, which this one does not name"
        let files = [("bind_key_file", bindKeyFile), ("irk_file", irkFile)].compactMap { key, file in
            file.map { ConfigError(.conflict("'\(key)' " + advice), about: $0) }
        }
        return mixed + files
    }

    /// Returns the error if no profile of the device takes its key of 12 bytes.
    private func shortKeyFinding(with registry: ProfileRegistry) -> ConfigError? {
        guard let file = bindKeyFile, BindKeyFile(file).key?.isComplete == false,
            let profiles, let profile = profiles.first,
            profiles.allSatisfy({ registry.needsCompleteKey($0.value) })
        else { return nil }
        let advice = "the native profile '\(profile.value)' takes only keys of 32; write one, or remove 'bind_key_file'"
        return ConfigError(.conflict("the key in '\(file.value)' has 24 hexadecimal digits; \(advice)"), about: file)
    }
}

extension SilenceSettings {
    /// The error if `silence` of a device that only advertises is not one duration.
    fileprivate var listeningFinding: ConfigError? {
        guard duration == nil, let place = all?.place ?? streams.keys.first?.place else { return nil }
        let advice = "a device that only advertises has no streams of its own: write one duration, for example 30m"
        return ConfigError(.conflict("'silence': " + advice), about: Located("silence", at: place))
    }
}

extension DeviceSettings {
    /// Returns the findings about unknown options and values out of range.
    func optionFindings(with registry: ProfileRegistry) -> [ConfigError] {
        let served = profiles.map { names in registry.profiles.filter { names.map(\.value).contains($0.name) } }
        let known = (served ?? registry.profiles).flatMap(\.options)
        return options.sorted { $0.key < $1.key }.compactMap { name, value in
            let options = known.filter { $0.name == name }
            guard let option = options.first else {
                let names = Set(known.map(\.name)).sorted().joined(separator: ", ")
                let advice = names.isEmpty ? "its profiles have none" : "its profiles have \(names)"
                return ConfigError(
                    .conflict("there is no option '\(name)'; \(advice)"),
                    about: Located(name, at: value.place)
                )
            }
            guard !option.range.contains(value.value) else { return nil }
            let unit = option.unit.map { " " + $0 } ?? ""
            let bounds = "\(option.range.lowerBound) to \(option.range.upperBound)\(unit)"
            let advice = "'\(name)' must be from \(bounds)"
            return ConfigError(.conflict(advice), about: Located("\(value.value)", at: value.place))
        }
    }
}
