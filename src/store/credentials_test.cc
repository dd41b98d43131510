#include "store/credentials.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/test_folder.h"

namespace foreload {
namespace {

class CredentialsTest : public testing::Test {
 protected:
  CredentialsTest() { variables_["HOME"] = folder_.path(); }

  Result<S3Access> find() const {
    return find_s3_access([this](const char* name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional<std::string>(found->second);
    });
  }
  std::string error() const {
    const auto access = find();
    return access ? "" : access.error().message;
  }

  const TestFolder folder_;
  std::map<std::string, std::string> variables_;
};

TEST_F(CredentialsTest, NothingMeansAnonymousInTheUsualRegion) {
  const auto access = find();
  ASSERT_TRUE(access.ok());
  EXPECT_FALSE(access->credentials.are_there());
  EXPECT_EQ(access->region, "us-east-1");
  EXPECT_EQ(access->endpoint, "");
}

TEST_F(CredentialsTest, TheEnvironmentComesFirst) {
  folder_.write(".aws/credentials", "[default]\naws_access_key_id = FILE\naws_secret_access_key = f\n");
  folder_.write(".aws/config", "[default]\nregion = eu-west-1\n");
  EXPECT_EQ(find()->credentials.access_key, "FILE");
  EXPECT_EQ(find()->region, "eu-west-1");
  variables_["AWS_ACCESS_KEY_ID"] = "ENV";
  variables_["AWS_SECRET_ACCESS_KEY"] = "e";
  variables_["AWS_SESSION_TOKEN"] = "t";
  variables_["AWS_DEFAULT_REGION"] = "eu-central-1";
  EXPECT_EQ(find()->credentials.access_key, "ENV");
  EXPECT_EQ(find()->credentials.session_token, "t");
  EXPECT_EQ(find()->region, "eu-central-1");
  variables_["AWS_REGION"] = "ap-south-1";
  EXPECT_EQ(find()->region, "ap-south-1");
  variables_["AWS_ENDPOINT_URL"] = "http://a";
  EXPECT_EQ(find()->endpoint, "http://a");
  variables_["AWS_ENDPOINT_URL_S3"] = "http://b";
  EXPECT_EQ(find()->endpoint, "http://b");
}

TEST_F(CredentialsTest, AProfileIsFoundInBothFiles) {
  variables_["AWS_SHARED_CREDENTIALS_FILE"] = folder_.write(
      "keys",
      "# comment\r\n[other]\naws_access_key_id=WRONG\n[work]\r\nAWS_Access_Key_Id = ID = x\r\n  nested = 1\n"
      "aws_secret_access_key=a=b\n; comment\naws_session_token = tok\n");
  variables_["AWS_CONFIG_FILE"] =
      folder_.write("config",
                    "[profile work]\nregion = us-west-2\ns3 =\n  region = wrong\n[profile \"in config\"]\n"
                    "aws_access_key_id = C\naws_secret_access_key = s\n");
  variables_["AWS_PROFILE"] = "work";
  EXPECT_NE(error().find("characters"), std::string::npos) << "a key with a blank in it";
  EXPECT_EQ(error().find("ID = x"), std::string::npos) << "not even a broken key is shown";
  variables_["AWS_PROFILE"] = "in config";
  ASSERT_TRUE(find().ok());
  EXPECT_EQ(find()->credentials.access_key, "C");
  variables_["AWS_PROFILE"] = "missing";
  EXPECT_NE(error().find("missing"), std::string::npos);
}

TEST_F(CredentialsTest, AByteOrderMarkIsNoPartOfTheFirstSection) {
  folder_.write(".aws/credentials", "\xEF\xBB\xBF[default]\naws_access_key_id = FILE\naws_secret_access_key = f\n");
  EXPECT_EQ(find()->credentials.access_key, "FILE");
}

TEST_F(CredentialsTest, FilesThatCanNotBeReadCountOnlyWhereTheyAreNeeded) {
  folder_.write(".aws/credentials/x", "a folder where a file should be");
  folder_.write(".aws/config", std::string(2 << 20, 'x'));
  EXPECT_NE(error().find(".aws/credentials"), std::string::npos);
  variables_["AWS_ACCESS_KEY_ID"] = "ENV";
  variables_["AWS_SECRET_ACCESS_KEY"] = "e";
  EXPECT_EQ(error(), "");
}

TEST_F(CredentialsTest, HalfAPairIsAnErrorWithoutTheHalf) {
  variables_["AWS_ACCESS_KEY_ID"] = "AKIAHALF";
  EXPECT_NE(error().find("both are needed"), std::string::npos);
  EXPECT_EQ(error().find("AKIAHALF"), std::string::npos);
  variables_.erase("AWS_ACCESS_KEY_ID");
  variables_["AWS_SECRET_ACCESS_KEY"] = "hush";
  EXPECT_NE(error().find("both are needed"), std::string::npos);
  EXPECT_EQ(error().find("hush"), std::string::npos);
}

TEST_F(CredentialsTest, WaysThatAreNotSupportedAreNamed) {
  folder_.write(".aws/config", "[default]\nrole_arn = arn:aws:iam::1:role/x\nsource_profile = y\n");
  EXPECT_NE(error().find("role_arn"), std::string::npos);
  folder_.write(".aws/config", "[profile a]\ncredential_process = /bin/false\n");
  EXPECT_EQ(error(), "") << "another profile's ways are nobody's business";
  variables_["AWS_PROFILE"] = "a";
  EXPECT_NE(error().find("credential_process"), std::string::npos);
}

TEST_F(CredentialsTest, HostileFilesAndValuesAreHarmless) {
  folder_.write(".aws/config",
                "[\n[]\n=\n[default\nregion\n=x\n" + std::string(1000, '[') + "\n[default]\nregion = a/b");
  EXPECT_NE(error().find("region"), std::string::npos);
  folder_.write(".aws/config", std::string(2 << 20, 'x'));
  EXPECT_NE(error().find("longer than"), std::string::npos);
  folder_.write(".aws/config", "");
  variables_["AWS_ACCESS_KEY_ID"] = "A\r\nX-Evil: 1";
  variables_["AWS_SECRET_ACCESS_KEY"] = "s";
  EXPECT_NE(error().find("characters"), std::string::npos);
  EXPECT_EQ(error().find("X-Evil"), std::string::npos);
}

}  // namespace
}  // namespace foreload
