"""The settings of a run: flags over `config.toml`, and nothing from the environment (decision 21)."""

from collections.abc import Mapping

from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from bcd.domain.model.pins import Pins
from bcd.protocol.files.config import KEYS, Address, Config
from bcd.wiring.config_file import built, checked_flags, values_in


class Settings(BaseSettings):
    """One field a key of `config.toml` (dots become underscores); None where nobody set it.

    What a key may hold is said once, in protocol.files.config.KEYS, for this and for the commands that start without
    pydantic; the types here make the two agree."""

    model_config = SettingsConfigDict(arbitrary_types_allowed=True, extra="forbid", frozen=True)

    data_dir: str | None = None
    join: Address | None = None
    gateway: Address | None = None
    serving_ca_spki_pin: Pins | None = None
    join_encryption_key_pin: Pins | None = None
    join_signing_key_pin: Pins | None = None
    command_root_sha256: Pins | None = None
    tpm_device: str | None = None
    tpm_wait_s: float | None = None
    helper_user: str | None = None
    helper_socket: str | None = None
    helper_record_dir: str | None = None
    log_level: str | None = None
    log_format: str | None = None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # Neither the environment nor a .env file: a pin from there would be an attack.
        return (init_settings,)


def read(path: str, flags: Mapping[str, str]) -> Config:
    """The configuration in `path` under `flags` (dotted keys, and the texts given for them)."""
    settings = Settings(**{_field(key): value for key, value in (values_in(path) | checked_flags(flags)).items()})
    found = {key: getattr(settings, _field(key)) for key in KEYS}
    return built(path, {key: value for key, value in found.items() if value is not None})


def _field(key: str) -> str:
    return key.replace(".", "_")
